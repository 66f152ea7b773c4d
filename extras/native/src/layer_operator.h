// The operators of products.h: a product with what stands around it in a layer.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels.h"
#include "operator.h"
#include "products.h"

namespace tandem {

constexpr int64_t kTogether = 16;  // panels of a task: their weights stay in a cache while all rows pass

// The shape of a sum by NumPy's rule, and whether there is one.
inline bool broadcast(const Shape& a, const Shape& b, Shape* out) {
  out->assign(std::max(a.size(), b.size()), 1);
  for (size_t i = 1; i <= out->size(); ++i) {
    const int64_t one = i <= a.size() ? a[a.size() - i] : 1, other = i <= b.size() ? b[b.size() - i] : 1;
    if (one != other && one != 1 && other != 1) return false;
    (*out)[out->size() - i] = one == 1 ? other : one;
  }
  return true;
}

// Where the element of a shape is that stands at ``index`` of the shape that it is broadcast to.
inline int64_t place(const Shape& shape, const Shape& out, int64_t index) {
  int64_t at = 0, step = 1;
  for (size_t i = 1; i <= out.size(); ++i) {
    const int64_t size = out[out.size() - i], coordinate = index % size;
    index /= size;
    if (i > shape.size()) continue;
    const int64_t own = shape[shape.size() - i];
    if (own != 1) at += coordinate * step;
    step *= own;
  }
  return at;
}

// Whether an optional input is given.
inline bool has(const Ort::KernelContext& context, size_t index) {
  return context.GetInputCount() > index && static_cast<const OrtValue*>(context.GetInput(index)) != nullptr;
}

// So many numbers of an optional input, or null.
inline const float* optional(const Ort::KernelContext& context, size_t index, int64_t count) {
  if (!has(context, index)) return nullptr;
  const auto value = context.GetInput(index);
  if (elements(shape_of(value)) != count) throw Refused("Product: an input has not one number a row or column");
  return value.template GetTensorData<float>();
}

// Rows as the kernels read them.
inline const uint8_t* whole_lines(const uint8_t* x, int64_t rows, int64_t features) {
  const int64_t depth = padded(features, kDepth);
  if (features == depth) return x;
  thread_local Lined<uint8_t> lines;
  lines.resize(rows * depth);
  for (int64_t row = 0; row < rows; ++row) std::copy_n(x + row * features, features, lines.data() + row * depth);
  return lines.data();
}

// The layer for all columns, shared among the threads of a call.
inline void all_panels(const Ort::KernelContext& context, const Weights& weights, const Layer& layer) {
  struct Task {
    const Weights& weights;
    const Layer& layer;
  } task = {weights, layer};
  const auto some = [](void* data, size_t number) {
    const Task& task = *static_cast<Task*>(data);
    const int64_t first = static_cast<int64_t>(number) * kTogether;
    products()->layer(task.weights, task.layer, first, std::min(first + kTogether, task.weights.panels()));
  };
  context.ParallelFor(some, (weights.panels() + kTogether - 1) / kTogether, 0, &task);
}

// Rows that are bytes, or become some: divided by their largest magnitude (or ``least``) where that is not 0.
template <ONNXTensorElementDataType kIn>
struct QuantisedRows {
  using Row = std::conditional_t<kIn == kFloat, float, uint8_t>;
  Levels levels;
  float least;

  explicit QuantisedRows(Ort::ConstKernelInfo info) : levels(info), least(info.GetAttribute<float>("least")) {}

  // As the kernels read them, and what they were divided by.
  const uint8_t* bytes(const Ort::ConstValue& value, int64_t rows, int64_t features, const float** largest) const {
    const Row* x = value.template GetTensorData<Row>();
    if constexpr (kIn == kByte) {
      return whole_lines(x, rows, features);
    } else {
      thread_local Lined<uint8_t> exact;
      thread_local std::vector<float> magnitudes;
      exact.resize(rows * features);
      if (least > 0) {
        magnitudes.resize(rows);
        *largest = magnitudes.data();
        kernels().quantise_rows(rows, features, least, levels.scale, levels.zero, x, exact.data(), magnitudes.data());
      } else {
        products()->quantise(rows * features, levels.scale, levels.zero, x, exact.data());
      }
      return whole_lines(exact.data(), rows, features);
    }
  }
};

inline Ort::ConstValue constant(Ort::ConstKernelInfo info, size_t index) {
  int is_constant = 0;
  const Ort::ConstValue value = info.GetTensorConstantInput(index, &is_constant);
  if (!is_constant) throw Refused("Product: weights, scales and bias must be constants");
  return value;
}

// The weights of an operator: inputs 1 and 2, and a bias where it is given.
inline StoredWeights stored(Ort::ConstKernelInfo info, const Levels& levels, size_t bias_index) {
  const auto values = constant(info, 1), scales = constant(info, 2);
  const bool turned = info.GetAttribute<int64_t>("turned") != 0;
  Shape shape = shape_of(values);
  if (turned) std::reverse(shape.begin(), shape.end());
  const int64_t count = elements(shape_of(scales));
  const bool biased = info.GetInputCount() > bias_index && !info.GetInputName(bias_index).empty();
  const float* bias = biased ? constant(info, bias_index).GetTensorData<float>() : nullptr;
  if (products() == nullptr || shape.size() != 2 || shape[0] < 1 || shape[1] < 1 ||
      (count != 1 && count != shape[1]) || (biased && elements(shape_of(constant(info, bias_index))) != shape[1])) {
    throw Refused("Product: sizes of weights, scales and bias do not fit together");
  }
  return StoredWeights(values.GetTensorData<int8_t>(), shape[0], shape[1], turned, levels.scale, levels.zero,
                       scales.GetTensorData<float>(), count, bias);
}

// ((x - zero) weights scale [largest] + bias [+ residual]) factor of rows x; at least 0 where it is ``rectified``, and in
// bytes again where kOut is one. ``flat`` results are R x 1 x N, others have the shape of x but for the columns.
template <ONNXTensorElementDataType kIn, ONNXTensorElementDataType kOut>
struct LayerProduct {
  static constexpr const char* kName =
      kIn == kFloat ? (kOut == kFloat ? "Product" : "ProductInLevels")
                    : (kOut == kFloat ? "ProductOfLevels" : "ProductOfLevelsInLevels");
  // x, weights, scales, bias, largest, residual
  static constexpr ONNXTensorElementDataType kInputs[] = {kIn, kSignedByte, kFloat, kFloat, kFloat, kFloat};
  static constexpr ONNXTensorElementDataType kOutputs[] = {kOut};
  static constexpr size_t kOptional = 3;

  QuantisedRows<kIn> quantised;
  float factor, out_scale;
  int64_t out_zero;
  bool flat, rectified;
  StoredWeights weights;

  explicit LayerProduct(Ort::ConstKernelInfo info)
      : quantised(info),
        factor(info.GetAttribute<float>("factor")),
        out_scale(info.GetAttribute<float>("out_scale")),
        out_zero(info.GetAttribute<int64_t>("out_zero")),
        flat(info.GetAttribute<int64_t>("flat") != 0),
        rectified(info.GetAttribute<int64_t>("rectified") != 0),
        weights(stored(info, quantised.levels, 3)) {}

  void compute(const Ort::KernelContext& context) const {
    const auto x = context.GetInput(0);
    const Shape in = shape_of(x);
    if (in.empty() || in.back() != weights.features) throw Refused("Product: rows do not have the weights' features");
    const int64_t rows = elements(in) / weights.features;
    Shape shape = in;
    shape.back() = weights.columns;
    if (flat) shape = {rows, 1, weights.columns};

    const float* largest = optional(context, 4, rows);
    const uint8_t* bytes = quantised.bytes(x, rows, weights.features, &largest);
    Layer layer = {rows, bytes, largest, nullptr, factor, rectified, nullptr, nullptr, out_scale,
                   static_cast<int32_t>(out_zero)};
    if (!has(context, 5)) {
      write(&layer, context.GetOutput(0, shape));
      return all_panels(context, weights.view(), layer);
    }
    const auto residual = context.GetInput(5);
    const Shape other = shape_of(residual);
    Shape sum;
    if (!broadcast(shape, other, &sum)) throw Refused("Product: what is added does not fit the product");
    layer.residual = residual.template GetTensorData<float>();
    if (elements(other) == elements(sum) && elements(shape) == elements(sum)) {
      write(&layer, context.GetOutput(0, sum));
      return all_panels(context, weights.view(), layer);
    }
    spread(context, layer, shape, other, sum);
  }

 private:
  static void write(Layer* layer, Ort::UnownedValue out) {
    if constexpr (kOut == kFloat) {
      layer->out = out.GetTensorMutableData<float>();
    } else {
      layer->levels = out.GetTensorMutableData<uint8_t>();
    }
  }

  // A sum of shapes that differ: no layer of ours has one.
  void spread(const Ort::KernelContext& context, Layer layer, const Shape& shape, const Shape& other,
                     const Shape& sum) const {
    std::vector<float> alone(elements(shape));
    const float* residual = layer.residual;
    layer.residual = nullptr;
    layer.rectified = false;
    layer.out = alone.data();
    all_panels(context, weights.view(), layer);
    auto out = context.GetOutput(0, sum);
    std::vector<float> added(elements(sum));
    for (int64_t i = 0; i < elements(sum); ++i) {
      added[i] = (alone[place(shape, sum, i)] + residual[place(other, sum, i)]) * factor;
      if (rectified && added[i] < 0) added[i] = 0;
    }
    if constexpr (kOut == kFloat) {
      std::copy(added.begin(), added.end(), out.template GetTensorMutableData<float>());
    } else {
      products()->quantise(elements(sum), out_scale, static_cast<int32_t>(out_zero), added.data(),
                           out.template GetTensorMutableData<uint8_t>());
    }
  }
};

}  // namespace tandem
