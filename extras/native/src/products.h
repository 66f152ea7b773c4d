// Products of rows in bytes with constant weights in bytes, and what a layer does with them: one of many for each
// instruction set that multiplies bytes and adds in 32 bits. On processors without one there are none.
//
// Sums of bytes are exact, and what follows is done value by value: neither the instruction set nor a row's neighbours
// change a bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace tandem {

// Where a cache line begins.
template <class T>
struct Aligned {
  using value_type = T;
  Aligned() = default;
  template <class U>
  Aligned(const Aligned<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{64})); }
  void deallocate(T* at, size_t) { ::operator delete(at, std::align_val_t{64}); }
  bool operator==(const Aligned&) const { return true; }
  bool operator!=(const Aligned&) const { return false; }
};
template <class T>
using Lined = std::vector<T, Aligned<T>>;

constexpr int64_t kDepth = 64;   // features are padded to whole cache lines of bytes,
constexpr int64_t kPanel = 16;   // columns lie in panels, four bytes of each after another,
constexpr int64_t kPanels = 4;   // and are padded to so many panels

inline int64_t padded(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

// Weights as the kernels read them, with what turns their sums into numbers. Arrays by column are padded like columns.
struct Weights {
  int64_t features, columns;  // K and N
  const int8_t* packed;       // panels x depth / 4 x 16 columns x 4 features
  const float* scales;        // of a level of rows times one of each column's weights
  const float* bias;
  const int32_t* offsets;  // the rows' zero point times each column's sum of weights

  int64_t depth() const { return padded(features, kDepth); }
  int64_t panels() const { return padded(columns, kPanel * kPanels) / kPanel; }

  // So many columns from one on, which begins ``kPanels`` panels.
  Weights from(int64_t first, int64_t count) const {
    return {features, count, packed + first * depth(), scales + first, bias + first, offsets + first};
  }
};

// Weights that stay, packed once.
struct StoredWeights {
  int64_t features, columns;
  Lined<int8_t> packed;
  Lined<float> scales, bias;
  Lined<int32_t> offsets;

  // weights K x N, or N x K where they are turned; ``scale`` and ``zero`` are those of rows; scales N or one; bias N or
  // null.
  StoredWeights(const int8_t* weights, int64_t k, int64_t n, bool turned, float scale, int32_t zero,
                const float* column_scales, int64_t scale_count, const float* column_bias);

  Weights view() const {
    return {features, columns, packed.data(), scales.data(), bias.data(), offsets.data()};
  }
};

// One column's K weights, which lie ``step`` apart, into the place of all N; returns their sum.
int32_t pack_column(const int8_t* weights, int64_t k, int64_t step, int64_t column, int8_t* packed);

// What becomes of a row's sums: ((sum scale) largest + bias + residual) factor, at least 0 where it is ``rectified``, and
// in bytes where ``levels`` is not null.
struct Layer {
  int64_t rows;
  const uint8_t* x;       // R x depth: rows begin ``depth`` bytes apart, and what is padded may be anything
  const float* largest;   // R, what rows were divided by, or null
  const float* residual;  // R x N, or null
  float factor;
  bool rectified;
  float* out;  // R x N, one of both
  uint8_t* levels;
  float scale;  // of levels, and their zero point
  int32_t zero;
};

struct Products {
  const char* name;

  // The layer for some panels, a whole number of ``kPanels``.
  void (*layer)(const Weights&, const Layer&, int64_t first, int64_t last);

  // round(x / scale) + zero, within a byte.
  void (*quantise)(int64_t count, float scale, int32_t zero, const float* x, uint8_t* levels);
};

// Those in use: the fastest that this processor can run, or null.
const Products* products();

// All that this processor can run, the fastest first; null behind the last.
const Products* const* runnable_products();

}  // namespace tandem
