// Products with those rows of a weight that a list names: packed where the list changes, read at every step.
#pragma once

#include "layer_operator.h"

namespace tandem {

// Packed weights as one tensor of bytes: the sum of each column's weights, and the panels, for so many columns.
struct PackedList {
  int64_t wide, size;

  PackedList(int64_t features, int64_t columns)
      : wide(padded(columns, kPanel * kPanels)),
        size(wide * static_cast<int64_t>(sizeof(int32_t)) + wide * padded(features, kDepth)) {}

  template <class Byte>
  auto* panels(Byte* bytes) const {
    return bytes + wide * sizeof(int32_t);
  }
};

// The rows of a weight V x K that a list of W entries names, packed as columns.
struct PackListed {
  static constexpr const char* kName = "PackListed";
  static constexpr ONNXTensorElementDataType kInputs[] = {kSignedByte, kInt};  // weight, entries
  static constexpr ONNXTensorElementDataType kOutputs[] = {kSignedByte};

  explicit PackListed(Ort::ConstKernelInfo) {}

  void compute(const Ort::KernelContext& context) const {
    const auto weight = context.GetInput(0), entries = context.GetInput(1);
    const Shape shape = shape_of(weight), list = shape_of(entries);
    if (shape.size() != 2 || shape[1] < 1 || list.size() != 1) {
      throw Refused("PackListed: weights must have two axes and entries one");
    }
    const int64_t features = shape[1];
    const PackedList packed(features, list[0]);
    int8_t* const out = context.GetOutput(0, Shape{packed.size}).GetTensorMutableData<int8_t>();
    std::fill_n(out, packed.size, int8_t{0});
    std::vector<int32_t> sums(packed.wide, 0);
    const int64_t* const ids = entries.GetTensorData<int64_t>();
    for (int64_t column = 0; column < list[0]; ++column) {
      if (ids[column] < 0 || ids[column] >= shape[0]) throw Refused("PackListed: there is no such entry");
      const int8_t* const row = weight.GetTensorData<int8_t>() + ids[column] * features;
      sums[column] = pack_column(row, features, 1, column, packed.panels(out));
    }
    std::memcpy(out, sums.data(), sums.size() * sizeof(int32_t));
  }
};

// (x - zero) weights scale [largest] + bias of rows in bytes x and packed weights.
struct ListedProduct {
  static constexpr const char* kName = "ListedProduct";
  // x, packed, scales, bias, largest
  static constexpr ONNXTensorElementDataType kInputs[] = {kByte, kSignedByte, kFloat, kFloat, kFloat};
  static constexpr ONNXTensorElementDataType kOutputs[] = {kFloat};
  static constexpr size_t kOptional = 2;
  Levels levels;

  explicit ListedProduct(Ort::ConstKernelInfo info) : levels(info) {}

  void compute(const Ort::KernelContext& context) const {
    const auto x = context.GetInput(0), packed = context.GetInput(1), scales = context.GetInput(2);
    Shape shape = shape_of(x);
    const int64_t columns = elements(shape_of(scales)), features = shape.empty() ? 0 : shape.back();
    const PackedList list(features, columns);
    if (features < 1 || elements(shape_of(packed)) != list.size) {
      throw Refused("ListedProduct: rows, packed weights and scales do not fit together");
    }
    const int64_t rows = elements(shape) / features;
    const float* const bias = optional(context, 3, columns);
    const float* const largest = optional(context, 4, rows);
    thread_local Lined<float> own_scales, own_bias;
    thread_local Lined<int32_t> offsets;
    own_scales.assign(list.wide, 0.0f);
    own_bias.assign(list.wide, 0.0f);
    offsets.resize(list.wide);
    const int8_t* const bytes = packed.GetTensorData<int8_t>();
    std::memcpy(offsets.data(), bytes, list.wide * sizeof(int32_t));
    for (int32_t& offset : offsets) offset *= levels.zero;
    for (int64_t column = 0; column < columns; ++column) {
      own_scales[column] = levels.scale * scales.GetTensorData<float>()[column];
      if (bias) own_bias[column] = bias[column];
    }
    shape.back() = columns;
    auto out = context.GetOutput(0, shape);
    const Weights weights = {features, columns, list.panels(bytes), own_scales.data(), own_bias.data(), offsets.data()};
    const Layer layer = {rows, whole_lines(x.GetTensorData<uint8_t>(), rows, features), largest, nullptr, 1.0f, false,
                         out.GetTensorMutableData<float>(), nullptr, 1.0f, 0};
    all_panels(context, weights, layer);
  }
};

}  // namespace tandem
