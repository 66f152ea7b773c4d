#include "products.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lanes.h"

namespace {

using tandem::kPanel;
using tandem::kPanels;
using tandem::Layer;
using tandem::Weights;

constexpr int kRows = 6;  // of a block in registers: 24 sums, four weights and what they are multiplied by
constexpr __mmask16 kEvery = 0xffff;
constexpr int64_t kBlock = kPanels * kPanel;
#define UNROLLED _Pragma("GCC unroll 32")

INLINED Ints integers(const int32_t* from) {
  Ints x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

INLINED Floats numbers(Ints x) { return __builtin_convertvector(x, Floats); }

// Sixteen values in bytes. (Masks of all lanes, since GCC 12 warns of what the plain forms leave undefined.)
INLINED void to_levels(uint8_t* levels, Floats x, float scale, int32_t zero) {
  const float least = static_cast<float>(-zero), most = static_cast<float>(255 - zero);
  const Floats units = x / scale;
  const Floats raised = units > least ? units : all(least);
  const Floats bounded = raised < most ? raised : all(most);
  const __m512i whole = _mm512_maskz_cvtps_epi32(kEvery, (__m512)bounded);  // the nearest, halves to even
  const __m512i shifted = _mm512_maskz_add_epi32(kEvery, whole, _mm512_set1_epi32(zero));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(levels), _mm512_maskz_cvtepi32_epi8(kEvery, shifted));
}

// The first of sixteen values.
template <class T>
INLINED void keep(T* to, const T* from, int64_t count) {
  std::memcpy(to, from, count * sizeof(T));
}

// What becomes of the sums of some rows and columns, which begin ``stride`` apart.
INLINED void finish(const Weights& w, const Layer& layer, int64_t row, int64_t rows, int64_t column, int64_t columns,
                    const int32_t* sums, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = (row + r) * w.columns;
    for (int64_t c = column; c < column + columns && c < w.columns; c += kPanel) {
      const int64_t here = std::min<int64_t>(kPanel, w.columns - c);
      Floats x = numbers(integers(sums + r * stride + c - column) - integers(w.offsets + c));
      x *= load(w.scales + c);
      if (layer.largest) x *= layer.largest[row + r];
      x += load(w.bias + c);
      if (layer.residual) {
        alignas(64) float part[kPanel] = {};
        const float* residual = layer.residual + at + c;
        if (here < kPanel) {
          keep(part, residual, here);
          residual = part;
        }
        x = (x + load(residual)) * layer.factor;
      }
      if (layer.rectified) x = x < 0.0f ? Floats{} : x;
      if (layer.levels) {
        alignas(64) uint8_t part[kPanel];
        to_levels(here < kPanel ? part : layer.levels + at + c, x, layer.scale, layer.zero);
        if (here < kPanel) keep(layer.levels + at + c, part, here);
      } else if (here < kPanel) {
        alignas(64) float part[kPanel];
        store(part, x);
        keep(layer.out + at + c, part, here);
      } else {
        store(layer.out + at + c, x);
      }
    }
  }
}

// So many rows times four panels, by AVX-512's products of bytes.
template <int kCount>
INLINED void by_vectors(const Weights& w, const Layer& layer, int64_t row, int64_t panel) {
  const int64_t depth = w.depth(), size = depth * kPanel;
  const int8_t* weights = w.packed + panel * size;
  const uint8_t* x = layer.x + row * depth;
  __m512i sums[kCount][kPanels];
  UNROLLED for (int r = 0; r < kCount; ++r) {
    UNROLLED for (int p = 0; p < kPanels; ++p) sums[r][p] = _mm512_setzero_si512();
  }
  for (int64_t k = 0; k < depth; k += 4) {
    __m512i part[kPanels];
    UNROLLED for (int p = 0; p < kPanels; ++p) part[p] = _mm512_loadu_si512(weights + p * size + k * kPanel);
    UNROLLED for (int r = 0; r < kCount; ++r) {
      int32_t four;
      std::memcpy(&four, x + r * depth + k, sizeof four);
      const __m512i same = _mm512_set1_epi32(four);
      UNROLLED for (int p = 0; p < kPanels; ++p) sums[r][p] = _mm512_dpbusd_epi32(sums[r][p], same, part[p]);
    }
  }
  alignas(64) int32_t found[kCount * kBlock];
  UNROLLED for (int r = 0; r < kCount; ++r) {
    UNROLLED for (int p = 0; p < kPanels; ++p) {
      _mm512_store_si512(found + r * kBlock + p * kPanel, sums[r][p]);
    }
  }
  finish(w, layer, row, kCount, panel * kPanel, kBlock, found, kBlock);
}

void rows_by_vectors(const Weights& w, const Layer& layer, int64_t row, int64_t panel) {
  for (; row + kRows <= layer.rows; row += kRows) by_vectors<kRows>(w, layer, row, panel);
  switch (layer.rows - row) {
    case 5:
      return by_vectors<5>(w, layer, row, panel);
    case 4:
      return by_vectors<4>(w, layer, row, panel);
    case 3:
      return by_vectors<3>(w, layer, row, panel);
    case 2:
      return by_vectors<2>(w, layer, row, panel);
    case 1:
      return by_vectors<1>(w, layer, row, panel);
  }
}

#if defined(TILES)

constexpr int64_t kTile = 16;      // rows of a tile, of 64 bytes each
constexpr int64_t kFewest = 8;     // rows for which tiles are worth it

// The shapes of tiles as the processor reads them: sums in 0 to 3, rows in 4 and 5, weights in 6 and 7.
struct alignas(64) Shapes {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t rows[16] = {};

  Shapes(int64_t first, int64_t second) {
    for (int tile = 0; tile < 8; ++tile) bytes[tile] = 64;
    for (const int tile : {0, 1, 4}) rows[tile] = static_cast<uint8_t>(first);
    for (const int tile : {2, 3, 5}) rows[tile] = static_cast<uint8_t>(second);
    for (const int tile : {6, 7}) rows[tile] = kTile;
  }
};

// Up to 16 rows, or with kTwo up to 32 of which more than 16 are there, times two panels.
template <bool kTwo>
INLINED void by_tiles(const Weights& w, const Layer& layer, int64_t row, int64_t rows, int64_t panel) {
  const int64_t depth = w.depth(), size = depth * kPanel;
  const int8_t* weights = w.packed + panel * size;
  const uint8_t* x = layer.x + row * depth;
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kTwo) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t k = 0; k < depth; k += tandem::kDepth) {
    _tile_loadd(4, x + k, depth);
    _tile_loadd(6, weights + k * kPanel, 64);
    _tile_dpbusd(0, 4, 6);
    _tile_loadd(7, weights + size + k * kPanel, 64);
    _tile_dpbusd(1, 4, 7);
    if constexpr (kTwo) {
      _tile_loadd(5, x + kTile * depth + k, depth);
      _tile_dpbusd(2, 5, 6);
      _tile_dpbusd(3, 5, 7);
    }
  }
  constexpr int64_t kWide = 2 * kPanel;
  alignas(64) int32_t found[2 * kTile * kWide];
  _tile_stored(0, found, 4 * kWide);
  _tile_stored(1, found + kPanel, 4 * kWide);
  if constexpr (kTwo) {
    _tile_stored(2, found + kTile * kWide, 4 * kWide);
    _tile_stored(3, found + kTile * kWide + kPanel, 4 * kWide);
  }
  finish(w, layer, row, rows, panel * kPanel, kWide, found, kWide);
}

void layer_by_tiles(const Weights& w, const Layer& layer, int64_t first, int64_t last) {
  for (int64_t row = 0; row < layer.rows; row += 2 * kTile) {
    const int64_t rows = std::min(2 * kTile, layer.rows - row);
    if (rows < kFewest) {
      for (int64_t panel = first; panel < last; panel += kPanels) rows_by_vectors(w, layer, row, panel);
      break;
    }
    const Shapes shapes(std::min(rows, kTile), std::max<int64_t>(rows - kTile, 1));
    _tile_loadconfig(&shapes);
    for (int64_t panel = first; panel < last; panel += 2) {
      if (rows > kTile) {
        by_tiles<true>(w, layer, row, rows, panel);
      } else {
        by_tiles<false>(w, layer, row, rows, panel);
      }
    }
    _tile_release();
  }
}

#define LAYER layer_by_tiles
#else

void layer_by_vectors(const Weights& w, const Layer& layer, int64_t first, int64_t last) {
  for (int64_t panel = first; panel < last; panel += kPanels) rows_by_vectors(w, layer, 0, panel);
}

#define LAYER layer_by_vectors
#endif

void quantise(int64_t count, float scale, int32_t zero, const float* x, uint8_t* levels) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) to_levels(levels + i, load(x + i), scale, zero);
  if (i == count) return;
  alignas(64) float part[kLanes] = {};
  alignas(64) uint8_t few[kLanes];
  keep(part, x + i, count - i);
  to_levels(few, load(part), scale, zero);
  keep(levels + i, few, count - i);
}

}  // namespace

#define NAMED(name) #name
#define TEXT(name) NAMED(name)

extern const tandem::Products TARGET;
const tandem::Products TARGET = {TEXT(TARGET), LAYER, quantise};
