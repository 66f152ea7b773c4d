// The best continuations of hypotheses. Shapes: B sentences, K rows of a sentence, R = B x K rows, V vocabulary or W
// entries of a list, C candidates, J bans.
#pragma once

#include <vector>

#include "kernels.h"

namespace tandem {

struct Search {
  int64_t sentences, rows, vocabulary, candidates, bans;  // B, K, V or W, C, J
};

// The best of each sentence's rows: scores, tokens and parents B x C, and the log-sum-exp R of rows.
struct Found {
  float* scores;
  int64_t *tokens, *parents;
  float* lse;
};

// models/steps/continuations.py, best_continuations, of logits that come in parts, each of all rows before the next: so
// that they are seen while they are in a cache, and need not be kept.
class Continuations {
 public:
  // banned R x J, of which what is no token bans nothing; forced R, -1 for none.
  Continuations(const Search& search, const int64_t* banned, const int64_t* forced);

  // So many logits of a row from ``first`` on, a multiple of ``kLogits`` but for the last.
  void consider(const Kernels& kernels, int64_t row, const float* logits, int64_t first, int64_t count) {
    kernels.consider(&rows_[row], search_.candidates, logits, first, count);
  }

  // When all have been seen; scores R are what rows have so far.
  void finish(const float* score, const Found& found) const;

 private:
  Search search_;
  std::vector<RowsBest> rows_;
};

// models/steps/shortlisted.py, best_listed: over W entries of which sentences list some, where listed B x W is not -inf;
// the others of all ``size`` tokens count with their mean logit R and ``spread`` more. Bans and forced tokens are places
// among the entries; logits R x W.
void best_listed(const Kernels& kernels, const Search& search, int64_t size, float spread, const float* logits,
                 const float* mean, const float* score, const int64_t* banned, const int64_t* forced,
                 const int64_t* entries, const float* listed, const Found& found);

}  // namespace tandem
