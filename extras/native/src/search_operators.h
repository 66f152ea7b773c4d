// The end of a step: from logits, or from what they are a product of, to the best continuations.
#pragma once

#include "layer_operator.h"
#include "search.h"

namespace tandem {

constexpr int64_t kColumns = 512;  // of a product that are searched together: they stay in a cache between

// What search says of the continuations of rows.
struct Wishes {
  const float* score;
  const int64_t *banned, *forced;
  Search search;

  // From inputs score, banned, forced and count, which begin at ``index``, of so many rows of some sentences.
  Wishes(const Ort::KernelContext& context, size_t index, int64_t sentences, int64_t rows, int64_t vocabulary) {
    const auto scores = context.GetInput(index), bans = context.GetInput(index + 1), only = context.GetInput(index + 2);
    const Shape shape = shape_of(bans);
    if (sentences < 1 || rows % sentences != 0 || vocabulary < 1 || shape.size() != 2 || shape[0] != rows ||
        elements(shape_of(scores)) != rows || elements(shape_of(only)) != rows) {
      throw Refused("Best continuations: sizes of logits, scores, bans and sentences do not fit together");
    }
    score = scores.GetTensorData<float>();
    banned = shape[1] ? bans.GetTensorData<int64_t>() : nullptr;
    forced = only.GetTensorData<int64_t>();
    const int64_t count = *context.GetInput(index + 3).GetTensorData<int64_t>();
    if (count < 1) throw Refused("Best continuations: count must be at least 1");
    search = {sentences, rows / sentences, vocabulary, count, shape[1]};
  }

  void bound() const {
    if (search.candidates > search.rows * search.vocabulary) {
      throw Refused("Best continuations: count must be at most the continuations of a sentence");
    }
  }
};

// The outputs scores, tokens, parents and log-sum-exp.
inline Found outputs(const Ort::KernelContext& context, const Search& search) {
  const Shape found = {search.sentences, search.candidates};
  auto scores = context.GetOutput(0, found), tokens = context.GetOutput(1, found);
  auto parents = context.GetOutput(2, found), lse = context.GetOutput(3, Shape{search.sentences * search.rows});
  return {scores.GetTensorMutableData<float>(), tokens.GetTensorMutableData<int64_t>(),
          parents.GetTensorMutableData<int64_t>(), lse.GetTensorMutableData<float>()};
}

struct BestContinuations {
  static constexpr const char* kName = "BestContinuations";
  // logits, score, banned, forced, count, and anything whose first axis is that of sentences
  static constexpr ONNXTensorElementDataType kInputs[] = {kFloat, kFloat, kInt, kInt, kInt, kFloat};
  static constexpr ONNXTensorElementDataType kOutputs[] = {kFloat, kInt, kInt, kFloat};

  explicit BestContinuations(Ort::ConstKernelInfo) {}

  void compute(const Ort::KernelContext& context) const {
    const auto logits = context.GetInput(0);
    const Shape shape = shape_of(logits), by_sentence = shape_of(context.GetInput(5));
    if (shape.size() != 2 || by_sentence.empty()) throw Refused("BestContinuations: logits must have two axes");
    const Wishes wishes(context, 1, by_sentence[0], shape[0], shape[1]);
    wishes.bound();
    const Found found = outputs(context, wishes.search);
    Continuations best(wishes.search, wishes.banned, wishes.forced);
    for (int64_t row = 0; row < shape[0]; ++row) {
      best.consider(kernels(), row, logits.GetTensorData<float>() + row * shape[1], 0, shape[1]);
    }
    best.finish(wishes.score, found);
  }
};

struct BestListed {
  static constexpr const char* kName = "BestListed";
  // logits of entries, mean of all, score, banned, forced, count, entries, listed
  static constexpr ONNXTensorElementDataType kInputs[] = {kFloat, kFloat, kFloat, kInt, kInt, kInt, kInt, kFloat};
  static constexpr ONNXTensorElementDataType kOutputs[] = {kFloat, kInt, kInt, kFloat};
  int64_t size;
  float spread;

  explicit BestListed(Ort::ConstKernelInfo info)
      : size(info.GetAttribute<int64_t>("size")), spread(info.GetAttribute<float>("spread")) {}

  void compute(const Ort::KernelContext& context) const {
    const auto logits = context.GetInput(0), mean = context.GetInput(1);
    const auto entries = context.GetInput(6), listed = context.GetInput(7);
    const Shape shape = shape_of(logits), lists = shape_of(listed);
    if (shape.size() != 2 || lists.size() != 2 || lists[1] != shape[1] || elements(shape_of(entries)) != shape[1] ||
        elements(shape_of(mean)) != shape[0]) {
      throw Refused("BestListed: sizes of logits, means and lists do not fit together");
    }
    Wishes wishes(context, 2, lists[0], shape[0], shape[1]);
    wishes.search.candidates = std::min(wishes.search.candidates, wishes.search.rows * shape[1]);
    const Found found = outputs(context, wishes.search);
    best_listed(kernels(), wishes.search, size, spread, logits.GetTensorData<float>(), mean.GetTensorData<float>(),
                wishes.score, wishes.banned, wishes.forced, entries.GetTensorData<int64_t>(),
                listed.GetTensorData<float>(), found);
  }
};

// The best continuations of rows whose logits are a product (LayerProduct), which are never all there at once.
template <ONNXTensorElementDataType kIn>
struct BestOfProduct {
  static constexpr const char* kName = kIn == kFloat ? "BestOfProduct" : "BestOfProductOfLevels";
  // x, weights, scales, score, banned, forced, count, anything whose first axis is that of sentences, bias, largest
  static constexpr ONNXTensorElementDataType kInputs[] = {kIn,  kSignedByte, kFloat, kFloat, kInt,
                                                          kInt, kInt,        kFloat, kFloat, kFloat};
  static constexpr ONNXTensorElementDataType kOutputs[] = {kFloat, kInt, kInt, kFloat};
  QuantisedRows<kIn> quantised;
  StoredWeights weights;

  explicit BestOfProduct(Ort::ConstKernelInfo info) : quantised(info), weights(stored(info, quantised.levels, 8)) {}

  void compute(const Ort::KernelContext& context) const {
    const auto x = context.GetInput(0);
    const Shape in = shape_of(x), by_sentence = shape_of(context.GetInput(7));
    if (in.empty() || in.back() != weights.features || by_sentence.empty()) {
      throw Refused("BestOfProduct: rows do not have the weights' features");
    }
    const int64_t rows = elements(in) / weights.features;
    const Wishes wishes(context, 3, by_sentence[0], rows, weights.columns);
    wishes.bound();
    const Found found = outputs(context, wishes.search);

    const float* largest = optional(context, 9, rows);
    const uint8_t* bytes = quantised.bytes(x, rows, weights.features, &largest);
    thread_local Lined<float> logits;
    logits.resize(rows * kColumns);
    Continuations best(wishes.search, wishes.banned, wishes.forced);
    const Weights all = weights.view();
    for (int64_t first = 0; first < all.columns; first += kColumns) {
      const Weights part = all.from(first, std::min(kColumns, all.columns - first));
      all_panels(context, part, {rows, bytes, largest, nullptr, 1.0f, false, logits.data(), nullptr, 1.0f, 0});
      for (int64_t row = 0; row < rows; ++row) {
        best.consider(kernels(), row, logits.data() + row * part.columns, first, part.columns);
      }
    }
    best.finish(wishes.score, found);
  }
};

}  // namespace tandem
