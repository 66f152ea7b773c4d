// The kernels of every instruction set that this processor runs against plain loops in double, on random sizes: built
// with the sanitizers by test_kernels.py. Prints the first difference and ends with 1, or says what was tried.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels.h"
#include "products.h"
#include "search.h"

namespace {

using Floats = std::vector<float>;
using Ids = std::vector<int64_t>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
std::mt19937 generator(1);

int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(generator); }

Floats normal(int64_t count, float deviation = 1.0f) {
  std::normal_distribution<float> distribution(0.0f, deviation);
  Floats drawn(count);
  for (float& x : drawn) x = distribution(generator);
  return drawn;
}

// An additive mask that lets at least the first position through where it must.
Floats mask(int64_t rows, int64_t positions, bool first) {
  Floats drawn(rows * positions);
  for (int64_t i = 0; i < rows * positions; ++i) {
    drawn[i] = between(0, 2) || (first && i % positions == 0) ? (between(0, 9) ? 0.0f : -0.5f) : -kInfinity;
  }
  return drawn;
}

void require(bool true_, const char* kernels, const char* what, double found = 0, double expected = 0) {
  if (true_) return;
  std::printf("%s: %s: %g instead of %g\n", kernels, what, found, expected);
  std::exit(1);
}

void near(const Floats& found, const std::vector<double>& expected, double tolerance, const char* name, const char* of) {
  require(found.size() == expected.size(), name, of);
  for (size_t i = 0; i < found.size(); ++i) {
    require(std::abs(found[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i])), name, of, found[i], expected[i]);
  }
}

// softmax(logits) times values, each of so many features.
std::vector<double> attended(const std::vector<double>& logits, const std::vector<const float*>& values, int64_t width) {
  std::vector<double> context(width, 0.0);
  const double most = logits.empty() ? 0.0 : *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const double logit : logits) total += std::exp(logit - most);
  for (size_t j = 0; j < logits.size(); ++j) {
    for (int64_t e = 0; e < width; ++e) context[e] += std::exp(logits[j] - most) / total * values[j][e];
  }
  return context;
}

double product(const float* a, const float* b, int64_t width) {
  return std::inner_product(a, a + width, b, 0.0);
}

void attention(const tandem::Kernels& k) {
  const int64_t B = between(1, 3), K = between(1, 5), H = between(1, 3), S = between(1, 40), E = between(1, 70);
  const int64_t F = between(1, 70), gap = between(0, 3);
  const float scale = 1.0f / std::sqrt(static_cast<float>(E));
  const bool source = between(0, 1);
  const int64_t V = source ? F : E;
  const tandem::Attention a = {B, K, H, S, E, V, scale, H * E + gap};
  const int64_t stride = source ? H * E : a.stride;
  const Floats query = normal(B * K * stride), key = normal(B * K * stride), value = normal(B * K * stride);
  const Floats keys = normal(B * H * S * E), values = normal(B * H * S * V);
  const Floats added = source ? mask(B, S, true) : mask(B * K, S, false);
  Floats found(B * K * H * V);
  if (source) {
    k.source_attention(a, query.data(), keys.data(), values.data(), added.data(), found.data());
  } else {
    k.history_attention(a, query.data(), key.data(), value.data(), keys.data(), values.data(), added.data(),
                        found.data());
  }
  std::vector<double> expected;
  for (int64_t row = 0; row < B * K; ++row) {
    const int64_t b = row / K;
    const float* own_mask = added.data() + (source ? b : row) * S;
    for (int64_t h = 0; h < H; ++h) {
      const float* q = query.data() + row * stride + h * E;
      std::vector<double> logits;
      std::vector<const float*> chosen;
      for (int64_t s = 0; s < S; ++s) {
        if (own_mask[s] == -kInfinity) continue;
        logits.push_back(product(q, keys.data() + ((b * H + h) * S + s) * E, E) * scale + own_mask[s]);
        chosen.push_back(values.data() + ((b * H + h) * S + s) * V);
      }
      if (!source) {
        logits.push_back(product(q, key.data() + row * stride + h * E, E) * scale);
        chosen.push_back(value.data() + row * stride + h * E);
      }
      for (const double x : attended(logits, chosen, V)) expected.push_back(x);
    }
  }
  near(found, expected, 2e-5, k.name, source ? "source_attention" : "history_attention");
}

void self_attention(const tandem::Kernels& k) {
  const int64_t B = between(1, 3), H = between(1, 3), S = between(1, 40), E = between(1, 70), D = H * E;
  const float scale = 1.0f / std::sqrt(static_cast<float>(E));
  const Floats packed = normal(B * S * 3 * D), hides = mask(B, S, true);
  const float* query = packed.data();
  Floats found(B * S * D, 7.0f);
  k.self_attention({B, S, H, S, E, E, scale, 3 * D}, query, query + D, query + 2 * D, hides.data(), found.data());
  std::vector<double> expected;
  for (int64_t row = 0; row < B * S; ++row) {
    const int64_t first = row / S * S;
    for (int64_t h = 0; h < H; ++h) {
      std::vector<double> logits;
      std::vector<const float*> chosen;
      for (int64_t s = first; s < first + S; ++s) {
        if (hides[s] == -kInfinity) continue;
        logits.push_back(product(query + row * 3 * D + h * E, query + (3 * s + 1) * D + h * E, E) * scale + hides[s]);
        chosen.push_back(query + (3 * s + 2) * D + h * E);
      }
      if (hides[row] == -kInfinity) logits.clear();
      for (const double x : attended(logits, chosen, E)) expected.push_back(x);
    }
  }
  near(found, expected, 2e-5, k.name, "self_attention");
}

struct Continuation {
  float score;
  int64_t token, parent;
};

void search(const tandem::Kernels& k) {
  const int64_t B = between(1, 3), K = between(1, 5), V = between(1, 900), C = between(1, std::min<int64_t>(12, K * V));
  const int64_t J = between(0, 3) ? between(0, 4) : between(0, 2 * V);
  const int64_t R = B * K;
  Floats logits = normal(R * V, 3.0f);
  if (between(0, 1)) {  // many that are equal
    for (float& x : logits) x = std::round(x);
  }
  if (V > 1 && between(0, 4) == 0) logits[between(0, R * V - 1)] = -kInfinity;
  const Floats score = normal(R, 5.0f);
  Ids banned(R * J), forced(R, -1);
  for (int64_t& one : banned) one = between(0, V);  // V bans nothing
  if (between(0, 3) == 0) forced[between(0, R - 1)] = between(0, V - 1);
  Floats scores(B * C), lse(R);
  Ids tokens(B * C), parents(B * C);
  tandem::Continuations best({B, K, V, C, J}, banned.data(), forced.data());
  const int64_t part = tandem::kLogits * between(1, 8);
  for (int64_t first = 0; first < V; first += part) {
    for (int64_t row = 0; row < R; ++row) {
      best.consider(k, row, logits.data() + row * V + first, first, std::min(part, V - first));
    }
  }
  best.finish(score.data(), {scores.data(), tokens.data(), parents.data(), lse.data()});
  std::vector<double> total(R);
  for (int64_t row = 0; row < R; ++row) {
    double sum = 0;
    for (int64_t v = 0; v < V; ++v) sum += std::exp(static_cast<double>(logits[row * V + v]));
    total[row] = std::log(sum);
  }
  near(lse, total, 2e-6, k.name, "log-sum-exp");
  for (int64_t b = 0; b < B; ++b) {
    std::vector<Continuation> all;
    for (int64_t row = b * K; row < (b + 1) * K; ++row) {
      std::vector<Continuation> own;
      for (int64_t v = 0; v < V; ++v) {
        const bool ban = std::count(banned.begin() + row * J, banned.begin() + (row + 1) * J, v) > 0;
        if (forced[row] >= 0 ? v == forced[row] : !ban) own.push_back({logits[row * V + v], v, row - b * K});
      }
      std::stable_sort(own.begin(), own.end(), [](auto& x, auto& y) { return x.score > y.score; });
      own.resize(std::min<size_t>(own.size(), C));
      for (Continuation& one : own) one.score = (one.score - lse[row]) + score[row];
      all.insert(all.end(), own.begin(), own.end());
    }
    std::stable_sort(all.begin(), all.end(), [](auto& x, auto& y) { return x.score > y.score; });
    for (int64_t c = 0; c < C; ++c) {
      const int64_t at = b * C + c;
      if (c >= static_cast<int64_t>(all.size()) || all[c].score == -kInfinity) {
        require(scores[at] == -kInfinity && tokens[at] >= 0 && tokens[at] < V, k.name, "what is not there", scores[at]);
        continue;
      }
      require(scores[at] == all[c].score, k.name, "score", scores[at], all[c].score);
      require(tokens[at] == all[c].token, k.name, "token", tokens[at], all[c].token);
      require(parents[at] == all[c].parent, k.name, "parent", parents[at], all[c].parent);
    }
  }
}

void listed(const tandem::Kernels& k) {
  const int64_t B = between(1, 3), K = between(1, 5), W = between(1, 700), size = W + between(0, 2000);
  const int64_t C = between(1, std::min<int64_t>(12, K * W)), J = between(0, 4), R = B * K;
  const float spread = 0.3f;
  const Floats logits = normal(R * W, 3.0f), mean = normal(R), score = normal(R, 5.0f);
  Floats lists(B * W);
  for (float& x : lists) x = between(0, 2) ? 0.0f : -kInfinity;
  for (int64_t b = 0; b < B; ++b) lists[b * W] = 0.0f;
  Ids banned(R * J), forced(R, -1), entries(W);
  for (int64_t& one : banned) one = between(0, W);  // W bans nothing
  if (between(0, 3) == 0) forced[between(0, R - 1)] = between(0, W - 1);
  for (int64_t w = 0; w < W; ++w) entries[w] = 2 * w + 1;
  Floats scores(B * C), lse(R);
  Ids tokens(B * C), parents(B * C);
  tandem::best_listed(k, {B, K, W, C, J}, size, spread, logits.data(), mean.data(), score.data(), banned.data(),
                      forced.data(), entries.data(), lists.data(),
                      {scores.data(), tokens.data(), parents.data(), lse.data()});
  for (int64_t b = 0; b < B; ++b) {
    const float* own = lists.data() + b * W;
    std::vector<Continuation> all;
    for (int64_t row = b * K; row < (b + 1) * K; ++row) {
      double total = 0, left = size;
      for (int64_t w = 0; w < W; ++w) {
        if (own[w] == -kInfinity) continue;
        total += std::exp(static_cast<double>(logits[row * W + w]));
        left -= 1;
      }
      total = std::log(total + left * std::exp(static_cast<double>(mean[row]) + spread));
      require(std::abs(lse[row] - total) <= 5e-6 * (1 + std::abs(total)), k.name, "log-sum-exp of a list", lse[row], total);
      for (int64_t w = 0; w < W; ++w) {
        const bool ban = std::count(banned.begin() + row * J, banned.begin() + (row + 1) * J, w) > 0;
        if (own[w] == -kInfinity || (forced[row] >= 0 ? w != forced[row] : ban)) continue;
        all.push_back({logits[row * W + w] + (score[row] - lse[row]), entries[w], row - b * K});
      }
    }
    std::stable_sort(all.begin(), all.end(), [](auto& x, auto& y) { return x.score > y.score; });
    for (int64_t c = 0; c < C; ++c) {
      const int64_t at = b * C + c;
      if (c >= static_cast<int64_t>(all.size())) {
        require(scores[at] == -kInfinity, k.name, "what is not listed", scores[at]);
        continue;
      }
      require(scores[at] == all[c].score, k.name, "score of a list", scores[at], all[c].score);
      require(tokens[at] == all[c].token, k.name, "token of a list", tokens[at], all[c].token);
      require(parents[at] == all[c].parent, k.name, "parent of a list", parents[at], all[c].parent);
    }
  }
}

// What is no number anywhere in a row shows in its log-sum-exp, which search looks at.
void not_finite(const tandem::Kernels& k) {
  const int64_t V = between(1, 300);
  Floats logits = normal(V), score = {0.0f}, scores(1), lse(1);
  logits[between(0, V - 1)] = between(0, 1) ? kInfinity : std::nanf("");
  Ids forced = {-1}, tokens(1), parents(1);
  tandem::Continuations best({1, 1, V, 1, 0}, nullptr, forced.data());
  best.consider(k, 0, logits.data(), 0, V);
  best.finish(score.data(), {scores.data(), tokens.data(), parents.data(), lse.data()});
  require(!std::isfinite(lse[0]), k.name, "log-sum-exp of what is not finite", lse[0]);
}

uint8_t level(float x, float scale, int32_t zero) {
  return static_cast<uint8_t>(std::clamp(std::nearbyint(x / scale) + static_cast<float>(zero), 0.0f, 255.0f));
}

void bytes(const tandem::Kernels& k) {
  const int64_t rows = between(1, 4), features = between(1, 150);
  Floats x = normal(rows * features, 2.0f);
  if (between(0, 3) == 0) std::fill(x.begin(), x.begin() + features, 0.0f);
  std::vector<uint8_t> found(x.size());
  Floats largest(rows);
  const int32_t zero = between(0, 1) ? 128 : 0;
  k.quantise_rows(rows, features, 1e-30f, 1.0f / 127, zero, x.data(), found.data(), largest.data());
  for (int64_t row = 0; row < rows; ++row) {
    float most = 1e-30f;
    for (int64_t i = 0; i < features; ++i) most = std::max(most, std::abs(x[row * features + i]));
    require(largest[row] == most, k.name, "largest magnitude", largest[row], most);
    for (int64_t i = 0; i < features; ++i) {
      const float unit = x[row * features + i] / most;
      const uint8_t expected = level(unit, 1.0f / 127, zero), got = found[row * features + i];
      require(got == expected, k.name, "level of a row", got, expected);
    }
  }

  const Floats gain = normal(features), bias = normal(features);
  Floats kept(between(0, 1) * x.size());
  k.quantise_normed(rows, features, 1e-5f, 0.03f, 100, gain.data(), bias.data(), x.data(),
                    kept.empty() ? nullptr : kept.data(), found.data());
  for (int64_t row = 0; row < rows; ++row) {
    const float* own = x.data() + row * features;
    const double mean = std::accumulate(own, own + features, 0.0) / features;
    double variance = 0;
    for (int64_t i = 0; i < features; ++i) variance += (own[i] - mean) * (own[i] - mean) / features;
    for (int64_t i = 0; i < features; ++i) {
      const double normed = (own[i] - mean) / std::sqrt(variance + 1e-5) * gain[i] + bias[i];
      const double expected = std::clamp(normed / 0.03 + 100, 0.0, 255.0), got = found[row * features + i];
      require(std::abs(got - expected) <= 0.501, k.name, "level of a normed row", got, expected);
      if (kept.empty()) continue;
      const double whole = kept[row * features + i];
      require(std::abs(whole - normed) <= 1e-4 * (1 + std::abs(normed)), k.name, "normed row", whole, normed);
    }
  }

  const int64_t half = features;
  Floats wide = normal(rows * 2 * half, 30.0f), gated(rows * half);
  std::vector<double> expected;
  k.gate(rows, half, wide.data(), gated.data());
  for (int64_t row = 0; row < rows; ++row) {
    const float* own = wide.data() + row * 2 * half;
    for (int64_t i = 0; i < half; ++i) expected.push_back(own[i] / (1 + std::exp(-static_cast<double>(own[half + i]))));
  }
  near(gated, expected, 1e-5, k.name, "gate");

  const Floats forget = normal(features, 30.0f), candidate = normal(features), previous = normal(features);
  Floats next(features), out(features);
  k.cell(features, forget.data(), candidate.data(), previous.data(), gain.data(), next.data(), out.data());
  std::vector<double> cells, outs;
  for (int64_t i = 0; i < features; ++i) {
    const double keeps = 1 / (1 + std::exp(-static_cast<double>(forget[i])));
    cells.push_back((1 - keeps) * candidate[i] + keeps * previous[i]);
    outs.push_back(gain[i] + std::max(cells.back(), 0.0));
  }
  near(next, cells, 1e-5, k.name, "cell");
  near(out, outs, 1e-5, k.name, "what leaves a cell");
}

// A product in numbers and in bytes, and that neither its neighbours nor the instruction set change a row.
void products(const tandem::Products& p) {
  const int64_t R = between(1, 70), K = between(1, 200), N = between(1, 150);
  const bool turned = between(0, 1), by_row = between(0, 1), added = between(0, 1), biased = between(0, 3);
  const bool rectified = between(0, 2) == 0;
  const float scale = 0.02f, factor = added ? 0.7f : 1.0f;
  const int32_t zero = between(0, 255);
  std::vector<int8_t> weights(K * N);
  for (int8_t& one : weights) one = static_cast<int8_t>(between(-128, 127));
  const Floats scales = normal(between(0, 3) ? N : 1, 0.1f), bias = normal(N), largest = normal(R), residual = normal(R * N);
  const tandem::StoredWeights stored(weights.data(), K, N, turned, scale, zero, scales.data(), scales.size(),
                                     biased ? bias.data() : nullptr);
  const tandem::Weights w = stored.view();
  const int64_t depth = w.depth();
  std::vector<uint8_t> x(R * depth);
  for (uint8_t& one : x) one = static_cast<uint8_t>(between(0, 255));
  Floats found(R * N), alone(N);
  std::vector<uint8_t> levels(R * N);
  tandem::Layer layer = {R, x.data(), by_row ? largest.data() : nullptr, added ? residual.data() : nullptr, factor,
                         rectified, found.data(), nullptr, 0.5f, 77};
  p.layer(w, layer, 0, w.panels());
  layer.levels = levels.data();
  p.layer(w, layer, 0, w.panels());
  std::vector<double> expected;
  for (int64_t row = 0; row < R; ++row) {
    for (int64_t n = 0; n < N; ++n) {
      int64_t sum = 0;
      for (int64_t k = 0; k < K; ++k) {
        sum += (static_cast<int64_t>(x[row * depth + k]) - zero) * weights[turned ? n * K + k : k * N + n];
      }
      double value = static_cast<double>(sum) * scale * scales[scales.size() == 1 ? 0 : n];
      if (by_row) value *= largest[row];
      if (biased) value += bias[n];
      if (added) value = (value + residual[row * N + n]) * factor;
      if (rectified) value = std::max(value, 0.0);
      expected.push_back(value);
      const double level = std::clamp(value / 0.5 + 77, 0.0, 255.0), got = levels[row * N + n];
      require(std::abs(got - level) <= 0.51, p.name, "level of a product", got, level);
    }
  }
  near(found, expected, 1e-5, p.name, "product");
  for (const tandem::Products* const* one = tandem::runnable_products(); *one; ++one) {
    const int64_t row = between(0, R - 1);
    const tandem::Layer single = {1, x.data() + row * depth, by_row ? largest.data() + row : nullptr,
                                  added ? residual.data() + row * N : nullptr, factor, rectified, alone.data(), nullptr, 1.0f, 0};
    (*one)->layer(w, single, 0, w.panels());
    require(std::equal(alone.begin(), alone.end(), found.begin() + row * N), p.name, "a row alone");
  }

  const Floats numbers = normal(between(1, 100), 60.0f);
  std::vector<uint8_t> bytes(numbers.size());
  p.quantise(numbers.size(), 0.7f, zero, numbers.data(), bytes.data());
  for (size_t i = 0; i < numbers.size(); ++i) {
    require(bytes[i] == level(numbers[i], 0.7f, zero), p.name, "level", bytes[i], level(numbers[i], 0.7f, zero));
  }
}

}  // namespace

int main() {
  int names = 0;
  for (const tandem::Kernels* const* one = tandem::runnable(); *one; ++one, ++names) {
    for (int turn = 0; turn < 400; ++turn) {
      attention(**one);
      self_attention(**one);
      search(**one);
      listed(**one);
      not_finite(**one);
      bytes(**one);
    }
    std::printf("%s\n", (*one)->name);
  }
  for (const tandem::Products* const* one = tandem::runnable_products(); *one; ++one) {
    for (int turn = 0; turn < 100; ++turn) products(**one);
    std::printf("%s\n", (*one)->name);
  }
  require(tandem::choose("kernels_plain") && !tandem::choose("none"), "targets", "choice");
  return names ? 0 : 1;
}
