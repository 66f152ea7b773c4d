// Weights in the order in which the kernels read them, whatever the instruction set.
#include <algorithm>

#include "products.h"

namespace {

int64_t padded(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

}  // namespace

tandem::Weights::Weights(const int8_t* weights, int64_t k, int64_t n, bool turned, float scale, int32_t zero,
                         const float* column_scales, int64_t scale_count, const float* column_bias)
    : features(k), columns(n), depth(padded(k, kDepth)) {
  const int64_t wide = padded(n, kPanel * kPanels);
  packed.assign(wide * depth, 0);
  scales.assign(wide, 0.0f);
  bias.assign(wide, 0.0f);
  offsets.assign(wide, 0);
  for (int64_t feature = 0; feature < k; ++feature) {
    for (int64_t column = 0; column < n; ++column) {
      const int64_t panel = column / kPanel, inside = column % kPanel;
      const int8_t weight = weights[turned ? column * k + feature : feature * n + column];
      packed[(panel * depth + feature / 4 * 4) * kPanel + inside * 4 + feature % 4] = weight;
      offsets[column] += zero * weight;
    }
  }
  for (int64_t column = 0; column < n; ++column) {
    scales[column] = scale * column_scales[scale_count == 1 ? 0 : column];
    if (column_bias) bias[column] = column_bias[column];
  }
}
