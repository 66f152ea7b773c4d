// What the operators compute, for one instruction set each. Shapes: B sentences, K rows of a sentence, R = B x K rows,
// H heads, E width of a head, S source positions, P pool slots.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem {

struct Attention {
  int64_t sentences, rows, heads, positions;  // B, K, H, and S or P
  int64_t width, value_width;                 // E of queries and keys, and of values
  float scale;                                // of the products of queries and keys
  int64_t stride;                             // from a row's new query, key and value to the next row's
};

struct Candidate {
  float score;
  int64_t token;
};

constexpr int64_t kLogits = 128;  // of which a row's log-sum-exp takes in so many at once

// What is known of a row's logits when some have been seen.
struct RowsBest {
  static constexpr int64_t kFree = -2;  // -1 is forced, too: to what is not there

  float most;           // the largest
  float totals[16];     // sums of e^(logit - most), each of every so many-th
  int64_t forced;       // the only token that may be chosen, or kFree
  std::vector<int64_t> banned;  // tokens, rising
  std::vector<Candidate> best;  // of those that may be chosen, best first, of equal ones the smaller token
};

struct Kernels {
  const char* name;

  // Contexts B x K x H x E of queries B x K x H x E over keys and values B x H x S x E; mask_BS is added to the
  // products, and where it is -inf nothing is read.
  void (*source_attention)(const Attention&, const float* query, const float* keys, const float* values,
                           const float* mask, float* context);

  // The same over the slots of a pool that a row sees, where history R x P is not -inf, and its own new key and value
  // H x E; a row's begin ``stride`` behind those of the row before.
  void (*history_attention)(const Attention&, const float* query, const float* key, const float* value,
                            const float* keys, const float* values, const float* history, float* context);

  // Contexts B x S x H x E of a sequence in itself: query, key and value of a position lie ``stride`` behind those of the
  // one before, S = rows = positions. A position that mask_BS hides attends to nothing, and its context is 0.
  void (*self_attention)(const Attention&, const float* query, const float* key, const float* value, const float* mask,
                         float* context);

  // So many further logits of a row, of tokens from ``first`` on; at most so many candidates are kept.
  void (*consider)(RowsBest* row, int64_t candidates, const float* logits, int64_t first, int64_t count);

  // round(x / max |row| / scale) + zero, at most 255, of rows of so many features, and each row's maximum (or least).
  void (*quantise_rows)(int64_t rows, int64_t features, float least, float scale, int32_t zero, const float* x,
                        uint8_t* levels, float* largest);

  // a sigmoid(b) of rows that are a and b side by side, so many features each.
  void (*gate)(int64_t rows, int64_t features, const float* x, float* gated);

  // A recurrence without products (SSRU): with f a sigmoid of ``forget``, cell = (1 - f) candidate + f previous, and
  // out = x + max(cell, 0); all of so many numbers.
  void (*cell)(int64_t count, const float* forget, const float* candidate, const float* previous, const float* x,
               float* cell, float* out);

  // round(norm(x) / scale) + zero of rows of so many features: layer normalisation with gain and bias. What is normed is
  // kept where ``normed`` is not null.
  void (*quantise_normed)(int64_t rows, int64_t features, float epsilon, float scale, int32_t zero, const float* gain,
                          const float* bias, const float* x, float* normed, uint8_t* levels);
};

// Those in use: the fastest that this processor can run, until others are chosen.
const Kernels& kernels();

// All that this processor can run, the fastest first; null behind the last.
const Kernels* const* runnable();

// Use those of a name. False where this processor cannot run any such.
bool choose(const char* name);

}  // namespace tandem
