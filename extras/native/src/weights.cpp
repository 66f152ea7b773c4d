// Weights in the order in which the kernels read them, whatever the instruction set.
#include <algorithm>

#include "products.h"

int32_t tandem::pack_column(const int8_t* weights, int64_t k, int64_t step, int64_t column, int8_t* packed) {
  int8_t* const own = packed + column / kPanel * padded(k, kDepth) * kPanel + column % kPanel * 4;
  int32_t sum = 0;
  for (int64_t feature = 0; feature < k; ++feature) {
    const int8_t weight = weights[feature * step];
    own[feature / 4 * 4 * kPanel + feature % 4] = weight;
    sum += weight;
  }
  return sum;
}

tandem::StoredWeights::StoredWeights(const int8_t* weights, int64_t k, int64_t n, bool turned, float scale,
                                     int32_t zero, const float* column_scales, int64_t scale_count,
                                     const float* column_bias)
    : features(k), columns(n) {
  const int64_t wide = padded(n, kPanel * kPanels);
  packed.assign(wide * padded(k, kDepth), 0);
  scales.assign(wide, 0.0f);
  bias.assign(wide, 0.0f);
  offsets.assign(wide, 0);
  for (int64_t column = 0; column < n; ++column) {
    const int8_t* own = weights + column * (turned ? k : 1);
    offsets[column] = zero * pack_column(own, k, turned ? 1 : n, column, packed.data());
    scales[column] = scale * column_scales[scale_count == 1 ? 0 : column];
    if (column_bias) bias[column] = column_bias[column];
  }
}
