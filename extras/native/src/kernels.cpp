#include "kernels.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lanes.h"

namespace {

using tandem::Attention;
using tandem::Candidate;
using tandem::RowsBest;

// The products of a query with the first kKeys of so many keys as there are lanes.
template <int kKeys>
INLINED void products(const float* query, const float* const* keys, int64_t width, float* out) {
  Floats acc[kLanes];
  for (int i = 0; i < kLanes; ++i) acc[i] = Floats{};
  const int64_t whole = width / kLanes * kLanes;
  for (int64_t e = 0; e < whole; e += kLanes) {
    const Floats q = load(query + e);
#pragma GCC unroll 16
    for (int i = 0; i < kKeys; ++i) acc[i] += q * load(keys[i] + e);
  }
  store(out, sums(acc));
  for (int64_t e = whole; e < width; ++e) {
    for (int i = 0; i < kKeys; ++i) out[i] += query[e] * keys[i][e];
  }
}

// ``out`` and ``keys`` have room for a whole vector more.
INLINED void all_products(const float* query, const float** keys, int64_t count, int64_t width, float* out) {
  int64_t first = 0;
  for (; first + kLanes <= count; first += kLanes) products<kLanes>(query, keys + first, width, out + first);
  const int64_t left = count - first;
  if (left == 0) return;
  for (int64_t i = left; i < kLanes; ++i) keys[first + i] = keys[first];  // read and thrown away
  if (left > kLanes / 2) {
    products<kLanes>(query, keys + first, width, out + first);
  } else {
    products<kLanes / 2>(query, keys + first, width, out + first);
  }
}

// In place; behind the last weight there is room for a whole vector.
INLINED void softmax(float* x, int64_t count) {
  const int64_t last = (count - 1) / kLanes * kLanes;
  const Ints inside = numbered() < static_cast<int32_t>(count - last);
  const Floats tail = inside ? load(x + last) : all(-kInfinity);
  Floats most = tail;
  for (int64_t i = 0; i < last; i += kLanes) most = larger(most, load(x + i));
  const float maximal = maximum(most);
  Floats total = Floats{};
  for (int64_t i = 0; i < last; i += kLanes) {
    const Floats power = exponential(load(x + i) - maximal);
    store(x + i, power);
    total += power;
  }
  const Floats power = inside ? exponential(tail - maximal) : Floats{};
  store(x + last, power);
  const float share = 1.0f / sum(total + power);
  for (int64_t i = 0; i <= last; i += kLanes) store(x + i, load(x + i) * share);
}

template <int kVectors>
INLINED void weighted_part(const float* weights, const float* const* values, int64_t count, int64_t at, float* out) {
  Floats even[kVectors], odd[kVectors];  // two sums at once: one would wait for itself
  for (int i = 0; i < kVectors; ++i) even[i] = odd[i] = Floats{};
  int64_t j = 0;
  for (; j + 2 <= count; j += 2) {
    for (int i = 0; i < kVectors; ++i) {
      even[i] += weights[j] * load(values[j] + at + i * kLanes);
      odd[i] += weights[j + 1] * load(values[j + 1] + at + i * kLanes);
    }
  }
  for (; j < count; ++j) {
    for (int i = 0; i < kVectors; ++i) even[i] += weights[j] * load(values[j] + at + i * kLanes);
  }
  for (int i = 0; i < kVectors; ++i) store(out + at + i * kLanes, even[i] + odd[i]);
}

INLINED void weighted(const float* weights, const float* const* values, int64_t count, int64_t width, float* out) {
  int64_t at = 0;
  for (; at + 4 * kLanes <= width; at += 4 * kLanes) weighted_part<4>(weights, values, count, at, out);
  for (; at + kLanes <= width; at += kLanes) weighted_part<1>(weights, values, count, at, out);
  for (; at < width; ++at) {
    float total = 0;
    for (int64_t j = 0; j < count; ++j) total += weights[j] * values[j][at];
    out[at] = total;
  }
}

// What one thread needs again and again.
struct Scratch {
  std::vector<const float*> keys, values;
  std::vector<float> weights, scaled, added;
  std::vector<int64_t> positions;

  Scratch(const Attention& a, int64_t rows)
      : keys(a.positions + 1 + kLanes),
        values(a.positions + 1),
        weights(a.positions + 1 + kLanes),
        scaled(a.width),
        added(rows * a.positions),
        positions(rows * a.positions) {}

  // The positions that a mask lets through, with what it adds there.
  int64_t visible(const float* mask, int64_t count, int64_t* at, float* add) {
    int64_t found = 0;
    for (int64_t p = 0; p < count; ++p) {
      at[found] = p;
      add[found] = mask[p];
      found += mask[p] != -kInfinity;
    }
    return found;
  }
};

// Ask for a row's features before they are read: rows of a pool lie apart, and products of weights go through the
// caches between one call and the next.
INLINED void ask_for(const float* features, int64_t width) {
  for (int64_t e = 0; e < width; e += 16) __builtin_prefetch(features + e);
}

// The scaled products of a query with the first keys.
INLINED void weigh(const Attention& a, Scratch& s, const float* query, int64_t count) {
  for (int64_t e = 0; e < a.width; ++e) s.scaled[e] = query[e] * a.scale;
  all_products(s.scaled.data(), s.keys.data(), count, a.width, s.weights.data());
}

void source_attention(const Attention& a, const float* query, const float* keys, const float* values,
                      const float* mask, float* context) {
  Scratch s(a, 1);
  for (int64_t b = 0; b < a.sentences; ++b) {
    const int64_t seen = s.visible(mask + b * a.positions, a.positions, s.positions.data(), s.added.data());
    for (int64_t h = 0; h < a.heads; ++h) {
      const float* own_keys = keys + (b * a.heads + h) * a.positions * a.width;
      const float* own_values = values + (b * a.heads + h) * a.positions * a.value_width;
      for (int64_t j = 0; j < seen; ++j) {
        s.keys[j] = own_keys + s.positions[j] * a.width;
        s.values[j] = own_values + s.positions[j] * a.value_width;
      }
      for (int64_t k = 0; k < a.rows; ++k) {
        const int64_t row = (b * a.rows + k) * a.heads + h;
        float* out = context + row * a.value_width;
        weigh(a, s, query + row * a.width, seen);
        for (int64_t j = 0; j < seen; ++j) s.weights[j] += s.added[j];
        if (seen) softmax(s.weights.data(), seen);
        weighted(s.weights.data(), s.values.data(), seen, a.value_width, out);
      }
    }
  }
}

void history_attention(const Attention& a, const float* query, const float* key, const float* value,
                       const float* keys, const float* values, const float* history, float* context) {
  Scratch s(a, a.rows);
  std::vector<int64_t> seen(a.rows);
  for (int64_t b = 0; b < a.sentences; ++b) {
    for (int64_t k = 0; k < a.rows; ++k) {
      const int64_t at = k * a.positions;
      const float* mask = history + b * a.rows * a.positions + at;
      seen[k] = s.visible(mask, a.positions, s.positions.data() + at, s.added.data() + at);
    }
    for (int64_t h = 0; h < a.heads; ++h) {
      const int64_t next = h + 1 < a.heads ? a.positions * a.width : 0;  // to the keys of the head after this
      const float* pool_keys = keys + (b * a.heads + h) * a.positions * a.width;
      const float* pool_values = values + (b * a.heads + h) * a.positions * a.value_width;
      for (int64_t k = 0; k < a.rows; ++k) {
        const int64_t row = (b * a.rows + k) * a.heads + h, count = seen[k];
        const int64_t* slots = s.positions.data() + k * a.positions;
        const float* added = s.added.data() + k * a.positions;
        for (int64_t j = 0; j < count; ++j) {
          s.keys[j] = pool_keys + slots[j] * a.width;
          s.values[j] = pool_values + slots[j] * a.value_width;
          ask_for(s.values[j], a.value_width);
          ask_for(s.keys[j] + next, a.width);
        }
        const int64_t own = (b * a.rows + k) * a.stride;
        s.keys[count] = key + own + h * a.width;
        s.values[count] = value + own + h * a.value_width;
        float* out = context + row * a.value_width;
        weigh(a, s, query + own + h * a.width, count + 1);
        for (int64_t j = 0; j < count; ++j) s.weights[j] += added[j];
        softmax(s.weights.data(), count + 1);
        weighted(s.weights.data(), s.values.data(), count + 1, a.value_width, out);
      }
    }
  }
}

void self_attention(const Attention& a, const float* query, const float* key, const float* value, const float* mask,
                    float* context) {
  Scratch s(a, 1);
  std::fill(context, context + a.sentences * a.positions * a.heads * a.width, 0.0f);
  for (int64_t b = 0; b < a.sentences; ++b) {
    const int64_t seen = s.visible(mask + b * a.positions, a.positions, s.positions.data(), s.added.data());
    for (int64_t h = 0; h < a.heads; ++h) {
      const int64_t first = b * a.positions * a.stride + h * a.width;
      for (int64_t j = 0; j < seen; ++j) {
        s.keys[j] = key + first + s.positions[j] * a.stride;
        s.values[j] = value + first + s.positions[j] * a.stride;
      }
      for (int64_t k = 0; k < seen; ++k) {
        const int64_t position = s.positions[k];
        weigh(a, s, query + first + position * a.stride, seen);
        for (int64_t j = 0; j < seen; ++j) s.weights[j] += s.added[j];
        softmax(s.weights.data(), seen);
        float* out = context + ((b * a.positions + position) * a.heads + h) * a.width;
        weighted(s.weights.data(), s.values.data(), seen, a.width, out);
      }
    }
  }
}

constexpr int kVectors = tandem::kLogits / kLanes;

// A block's vectors; what it lacks counts for nothing.
INLINED void block(const float* x, int64_t count, Floats* parts) {
  if (count == tandem::kLogits) {
    for (int i = 0; i < kVectors; ++i) parts[i] = load(x + i * kLanes);
    return;
  }
  alignas(64) float padded[tandem::kLogits];
  std::fill(std::copy(x, x + count, padded), padded + tandem::kLogits, -kInfinity);
  for (int i = 0; i < kVectors; ++i) parts[i] = load(padded + i * kLanes);
}

INLINED float block_maximum(const Floats* parts) {
  Floats most[kVectors];
  for (int i = 0; i < kVectors; ++i) most[i] = larger(parts[i], all(-kInfinity));  // no number counts for nothing, too
  for (int step = kVectors / 2; step > 0; step /= 2) {
    for (int i = 0; i < step; ++i) most[i] = larger(most[i], most[i + step]);
  }
  return maximum(most[0]);
}

// Take a block into a row's log-sum-exp.
INLINED void add_powers(RowsBest* row, const Floats* parts, float maximal) {
  Floats totals = load(row->totals);
  if (maximal > row->most) {
    totals *= std::exp(row->most - maximal);
    row->most = maximal;
  }
  const float shift = row->most > -kInfinity ? row->most : 0.0f;
  Floats powers[kVectors];
  for (int i = 0; i < kVectors; ++i) powers[i] = exponential(parts[i] - shift);
  for (int step = kVectors / 2; step > 0; step /= 2) {
    for (int i = 0; i < step; ++i) powers[i] += powers[i + step];
  }
  store(row->totals, totals + powers[0]);
}

// The best of a row's candidates when it has as many as are wanted; what is better goes in.
INLINED float bar(const RowsBest& row, int64_t wanted) {
  return static_cast<int64_t>(row.best.size()) < wanted ? -kInfinity : row.best.back().score;
}

void offer(RowsBest* row, int64_t wanted, const Candidate& one) {
  if (std::binary_search(row->banned.begin(), row->banned.end(), one.token)) return;
  if (static_cast<int64_t>(row->best.size()) == wanted) row->best.pop_back();
  auto place = row->best.end();
  while (place != row->best.begin() && (place - 1)->score < one.score) --place;
  row->best.insert(place, one);
}

void consider(RowsBest* row, int64_t candidates, const float* logits, int64_t first, int64_t count) {
  for (int64_t start = 0; start < count; start += tandem::kLogits) {
    const float* x = logits + start;
    const int64_t here = std::min(tandem::kLogits, count - start), token = first + start;
    Floats parts[kVectors];
    block(x, here, parts);
    const float maximal = block_maximum(parts);
    add_powers(row, parts, maximal);
    if (row->forced != RowsBest::kFree) {
      const int64_t place = row->forced - token;
      if (place >= 0 && place < here) row->best.push_back({x[place], row->forced});
      continue;
    }
    if (!(maximal > bar(*row, candidates))) continue;
    for (int i = 0; i < kVectors; ++i) {
      if (!(maximum(parts[i]) > bar(*row, candidates))) continue;
      for (int64_t j = i * kLanes; j < std::min<int64_t>(here, (i + 1) * kLanes); ++j) {
        if (x[j] > bar(*row, candidates)) offer(row, candidates, {x[j], token + j});
      }
    }
  }
}

// round(x / scale) + zero within a byte, halves to even.
INLINED uint8_t level(float x, float scale, int32_t zero) {
  const float rounded = std::nearbyint(x / scale) + static_cast<float>(zero);
  return static_cast<uint8_t>(std::min(std::max(rounded, 0.0f), 255.0f));
}

void quantise_rows(int64_t rows, int64_t features, float least, float scale, int32_t zero, const float* x,
                   uint8_t* levels, float* largest) {
  for (int64_t row = 0; row < rows; ++row, x += features, levels += features) {
    Floats extremes = all(least);
    int64_t i = 0;
    for (; i + kLanes <= features; i += kLanes) {
      const Floats part = load(x + i);
      extremes = larger(larger(part, -part), extremes);
    }
    float most = maximum(extremes);
    for (; i < features; ++i) most = std::max(most, std::abs(x[i]));
    largest[row] = most;
    for (i = 0; i < features; ++i) levels[i] = level(x[i] / most, scale, zero);
  }
}

// What a sigmoid divides by: 1 + e^-x.
INLINED Floats opened(Floats x) { return 1.0f + exponential(-x > 88.0f ? all(88.0f) : -x); }

void gate(int64_t rows, int64_t features, const float* x, float* gated) {
  for (int64_t row = 0; row < rows; ++row, x += 2 * features, gated += features) {
    int64_t i = 0;
    for (; i + kLanes <= features; i += kLanes) store(gated + i, load(x + i) / opened(load(x + features + i)));
    for (; i < features; ++i) gated[i] = x[i] / (1.0f + std::exp(-x[features + i]));
  }
}

void cell(int64_t count, const float* forget, const float* candidate, const float* previous, const float* x,
          float* next, float* out) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Floats kept = 1.0f / opened(load(forget + i));
    const Floats mixed = (1.0f - kept) * load(candidate + i) + kept * load(previous + i);
    store(next + i, mixed);
    store(out + i, load(x + i) + (mixed < 0.0f ? Floats{} : mixed));
  }
  for (; i < count; ++i) {
    const float kept = 1.0f / (1.0f + std::exp(-forget[i]));
    next[i] = (1.0f - kept) * candidate[i] + kept * previous[i];
    out[i] = x[i] + (next[i] < 0.0f ? 0.0f : next[i]);
  }
}

void quantise_normed(int64_t rows, int64_t features, float epsilon, float scale, int32_t zero, const float* gain,
                     const float* bias, const float* x, float* normed, uint8_t* levels) {
  const int64_t whole = features / kLanes * kLanes;
  for (int64_t row = 0; row < rows; ++row, x += features, levels += features) {
    Floats total = Floats{}, squares = Floats{};
    for (int64_t i = 0; i < whole; i += kLanes) total += load(x + i);
    float rest = 0;
    for (int64_t i = whole; i < features; ++i) rest += x[i];
    const float mean = (sum(total) + rest) / static_cast<float>(features);
    for (int64_t i = 0; i < whole; i += kLanes) {
      const Floats from_mean = load(x + i) - mean;
      squares += from_mean * from_mean;
    }
    rest = 0;
    for (int64_t i = whole; i < features; ++i) rest += (x[i] - mean) * (x[i] - mean);
    const float deviation = std::sqrt((sum(squares) + rest) / static_cast<float>(features) + epsilon);
    if (normed == nullptr) {
      for (int64_t i = 0; i < features; ++i) {
        levels[i] = level((x[i] - mean) / deviation * gain[i] + bias[i], scale, zero);
      }
      continue;
    }
    for (int64_t i = 0; i < features; ++i) normed[i] = (x[i] - mean) / deviation * gain[i] + bias[i];
    for (int64_t i = 0; i < features; ++i) levels[i] = level(normed[i], scale, zero);
    normed += features;
  }
}

}  // namespace

#define NAMED(name) #name
#define TEXT(name) NAMED(name)

extern const tandem::Kernels TARGET;
const tandem::Kernels TARGET = {TEXT(TARGET), source_attention, history_attention, self_attention,
                                consider, quantise_rows, gate, cell, quantise_normed};
