// Vectors of LANES floats, written once for every instruction set: kernels.cpp is compiled once for each.
//
// Sums are taken in an order that depends on their length alone, never on where a row lies or what is computed beside
// it, so that a sentence has the same bits in any batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#define INLINED inline __attribute__((always_inline))

namespace {

constexpr int kLanes = LANES;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));

INLINED Floats load(const float* from) {
  Floats x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

INLINED void store(float* to, Floats x) { std::memcpy(to, &x, sizeof x); }

INLINED Floats all(float x) { return x - Floats{}; }

INLINED Ints numbered() {
  Ints lane;
  for (int i = 0; i < kLanes; ++i) lane[i] = i;
  return lane;
}

// The lanes of a, or of b at 0 <= lane - kLanes.
INLINED Floats picked(Floats a, Floats b, Ints lane) {
#if defined(__clang__)
  Floats x;
  for (int i = 0; i < kLanes; ++i) x[i] = lane[i] < kLanes ? a[lane[i]] : b[lane[i] - kLanes];
  return x;
#else
  return __builtin_shuffle(a, b, lane);
#endif
}

// The larger of both; b where one is no number.
INLINED Floats larger(Floats a, Floats b) {
#if defined(__AVX512F__) && LANES == 16
  return (Floats)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
#else
  return a > b ? a : b;
#endif
}

template <int kDistance>
INLINED Floats exchanged(Floats x) {
  return picked(x, x, numbered() ^ kDistance);
}

INLINED float sum(Floats x) {
  if constexpr (kLanes > 8) x += exchanged<8>(x);
  if constexpr (kLanes > 4) x += exchanged<4>(x);
  x += exchanged<2>(x);
  x += exchanged<1>(x);
  return x[0];
}

INLINED float maximum(Floats x) {
  if constexpr (kLanes > 8) x = larger(x, exchanged<8>(x));
  if constexpr (kLanes > 4) x = larger(x, exchanged<4>(x));
  x = larger(x, exchanged<2>(x));
  x = larger(x, exchanged<1>(x));
  return x[0];
}

// Of two vectors the sums of lanes so far apart: those of a in even blocks of lanes, those of b in odd ones.
template <int kDistance>
INLINED Floats folded(Floats a, Floats b) {
  const Ints lane = numbered();
  const Ints odd = (lane & kDistance) != 0;
  return picked(a, b, odd ? lane - kDistance + kLanes : lane) + picked(a, b, odd ? lane + kLanes : lane + kDistance);
}

// The sums of so many vectors as there are lanes, one a lane.
INLINED Floats sums(const Floats* x) {
  Floats half[kLanes / 2];
  for (int i = 0; i < kLanes / 2; ++i) half[i] = folded<kLanes / 2>(x[i], x[i + kLanes / 2]);
  if constexpr (kLanes == 4) {
    return folded<1>(half[0], half[1]);
  } else {
    Floats quarter[kLanes / 4];
    for (int i = 0; i < kLanes / 4; ++i) quarter[i] = folded<kLanes / 4>(half[i], half[i + kLanes / 4]);
    if constexpr (kLanes == 8) {
      return folded<1>(quarter[0], quarter[1]);
    } else {
      return folded<1>(folded<2>(quarter[0], quarter[2]), folded<2>(quarter[1], quarter[3]));
    }
  }
}

// p 2^n for whole numbers n, which with AVX-512 may be any.
INLINED Floats scaled(Floats p, Floats n) {
#if defined(__AVX512F__) && LANES == 16
  return (Floats)_mm512_maskz_scalef_ps(0xffff, (__m512)p, (__m512)n);
#else
  // The last bits of n + 1.5 * 2^23 are n.
  n += 12582912.0f;
  Ints exponent, bits;
  std::memcpy(&exponent, &n, sizeof n);
  std::memcpy(&bits, &p, sizeof p);
  bits += exponent << 23;
  Floats x;
  std::memcpy(&x, &bits, sizeof x);
  return p == p ? x : p;
#endif
}

// e^x of x <= 88, to 2 units in the last place; e^-87 of what is smaller, and no number of what is none.
INLINED Floats exponential(Floats x) {
  const Floats bounded = larger(all(-87.0f), x);
  // Adding 1.5 * 2^23 leaves the nearest whole number in the last bits (x log2 e = n + r log2 e, e^x = 2^n e^r).
  const Floats magic = all(12582912.0f);
  const Floats n = (bounded * 1.44269504f + magic) - magic;
  const Floats r = bounded - n * 0.693359375f + n * 2.12194440e-4f;  // ln 2 in two parts, the first of few bits
  Floats p = all(1.9875691500e-4f);  // Cephes' polynomial of e^r (expf)
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return scaled(p, n);
}

}  // namespace
