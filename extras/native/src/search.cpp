#include "search.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

namespace {

using tandem::Candidate;
using tandem::Found;
using tandem::RowsBest;
using tandem::Search;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The best of a sentence's rows, which have so many candidates each.
class Sentence {
 public:
  explicit Sentence(int64_t candidates) : candidates_(candidates) {}

  void add(float score, int64_t token) { together_.push_back({score, token}); }

  // A row ends; what it lacks are candidates that cannot be chosen.
  void end_row(int64_t token) { together_.resize(++rows_ * candidates_, {-kInfinity, token}); }

  void rank(int64_t sentence, const Found& found) {
    ranked_.clear();
    for (size_t i = 0; i < together_.size(); ++i) {
      ranked_.push_back({together_[i].score, static_cast<int64_t>(i)});
    }
    // Of equal scores the one before comes first, as in a top-k.
    std::partial_sort(ranked_.begin(), ranked_.begin() + candidates_, ranked_.end(),
                      [](const Candidate& a, const Candidate& b) {
                        return a.score > b.score || (a.score == b.score && a.token < b.token);
                      });
    for (int64_t c = 0; c < candidates_; ++c) {
      const int64_t place = ranked_[c].token, at = sentence * candidates_ + c;
      found.scores[at] = ranked_[c].score;
      found.tokens[at] = together_[place].token;
      found.parents[at] = place / candidates_;
    }
    together_.clear();
    rows_ = 0;
  }

 private:
  int64_t candidates_, rows_ = 0;
  std::vector<Candidate> together_, ranked_;
};

// A row of which nothing has been seen.
template <class Place>
void begin(RowsBest* row, const int64_t* banned, int64_t bans, int64_t forced, Place place_of) {
  *row = {-kInfinity, {}, forced, {}, {}};
  if (forced != RowsBest::kFree) return;
  for (int64_t j = 0; j < bans; ++j) {
    const int64_t place = place_of(banned[j]);
    if (place >= 0) row->banned.push_back(place);  // others fill shorter rows up
  }
  std::sort(row->banned.begin(), row->banned.end());
}

float log_sum_exp(const RowsBest& row) {
  return row.most + std::log(std::accumulate(std::begin(row.totals), std::end(row.totals), 0.0f));
}

}  // namespace

tandem::Continuations::Continuations(const Search& search, const int64_t* banned, const int64_t* forced)
    : search_(search), rows_(search.sentences * search.rows) {
  const auto place_of = [&](int64_t token) { return token < search.vocabulary ? token : -1; };
  for (size_t row = 0; row < rows_.size(); ++row) {
    const int64_t only = forced[row] < 0 ? RowsBest::kFree : forced[row];
    begin(&rows_[row], banned + row * search.bans, search.bans, only, place_of);
  }
}

void tandem::Continuations::finish(const float* score, const Found& found) const {
  Sentence sentence(search_.candidates);
  for (int64_t b = 0; b < search_.sentences; ++b) {
    for (int64_t row = b * search_.rows; row < (b + 1) * search_.rows; ++row) {
      const RowsBest& own = rows_[row];
      found.lse[row] = log_sum_exp(own);
      for (const Candidate& one : own.best) sentence.add((one.score - found.lse[row]) + score[row], one.token);
      sentence.end_row(own.forced == RowsBest::kFree ? 0 : own.forced);
    }
    sentence.rank(b, found);
  }
}

void tandem::best_listed(const Kernels& kernels, const Search& s, int64_t size, float spread, const float* logits,
                         const float* mean, const float* score, const int64_t* banned, const int64_t* forced,
                         const int64_t* entries, const float* listed, const Found& found) {
  Sentence sentence(s.candidates);
  RowsBest best;
  std::vector<int64_t> own;  // places of the entries that the sentence lists
  std::vector<float> x;      // a row's logits of those, so that no sum depends on what others list
  const auto place_of = [&](int64_t entry) {
    const auto place = std::lower_bound(own.begin(), own.end(), entry);
    return place != own.end() && *place == entry ? place - own.begin() : -1;
  };
  for (int64_t b = 0; b < s.sentences; ++b) {
    own.clear();
    for (int64_t w = 0; w < s.vocabulary; ++w) {
      if (listed[b * s.vocabulary + w] != -kInfinity) own.push_back(w);
    }
    const int64_t count = static_cast<int64_t>(own.size());
    const float others = std::log(static_cast<float>(size - count)) + spread;
    x.resize(count);
    for (int64_t row = b * s.rows; row < (b + 1) * s.rows; ++row) {
      for (int64_t i = 0; i < count; ++i) x[i] = logits[row * s.vocabulary + own[i]];
      const int64_t only = forced[row] < 0 ? RowsBest::kFree : place_of(forced[row]);
      begin(&best, banned + row * s.bans, s.bans, only, place_of);
      kernels.consider(&best, s.candidates, x.data(), 0, count);
      const float rest = mean[row] + others, seen = log_sum_exp(best);
      // Not with std::max, which would hide what is no number.
      const float most = rest > seen ? rest : seen, less = rest > seen ? seen : rest;
      found.lse[row] = less == -kInfinity ? most : most + std::log1p(std::exp(less - most));
      for (const Candidate& one : best.best) {
        sentence.add(one.score + (score[row] - found.lse[row]), entries[own[one.token]]);
      }
      sentence.end_row(entries[0]);
    }
    sentence.rank(b, found);
  }
}
