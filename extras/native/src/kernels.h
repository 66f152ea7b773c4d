// What the operators compute, for one instruction set each. Shapes: B sentences, K rows of a sentence, R = B x K rows,
// H heads, E width of a head, S source positions, P pool slots, V vocabulary, C candidates, J bans.
#pragma once

#include <cstdint>

namespace tandem {

struct Attention {
  int64_t sentences, rows, heads, positions;  // B, K, H, and S or P
  int64_t width, value_width;                 // E of queries and keys, and of values
  float scale;                                // of the products of queries and keys
  int64_t stride;                             // from a row's new query, key and value to the next row's
};

struct Search {
  int64_t sentences, rows, vocabulary, candidates, bans;  // B, K, V or W, C, J
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

  // models/steps/continuations.py, best_continuations: scores, tokens and parents B x C, and the log-sum-exp of rows.
  void (*best_continuations)(const Search&, const float* logits, const float* score, const int64_t* banned,
                             const int64_t* forced, float* scores, int64_t* tokens, int64_t* parents, float* lse);

  // models/steps/shortlisted.py, best_listed: the same over W entries of which sentences list some, where listed B x W is
  // not -inf; the others of all ``size`` tokens count with their mean logit R and ``spread`` more.
  void (*best_listed)(const Search&, int64_t size, float spread, const float* logits, const float* mean,
                      const float* score, const int64_t* banned, const int64_t* forced, const int64_t* entries,
                      const float* listed, float* scores, int64_t* tokens, int64_t* parents, float* lse);

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
