// What all operators share: how ONNX Runtime sees them, and the shapes that it gives.
#pragma once

#define ORT_API_MANUAL_INIT
#include <onnxruntime_cxx_api.h>
#undef ORT_API_MANUAL_INIT

#include <exception>
#include <iterator>
#include <stdexcept>
#include <vector>

namespace tandem {

using Shape = std::vector<int64_t>;
constexpr ONNXTensorElementDataType kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
constexpr ONNXTensorElementDataType kInt = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
constexpr ONNXTensorElementDataType kByte = ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8;
constexpr ONNXTensorElementDataType kSignedByte = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8;

inline Shape shape_of(const Ort::ConstValue& value) { return value.GetTensorTypeAndShapeInfo().GetShape(); }

inline int64_t elements(const Shape& shape) {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

// What an operator is given and cannot use: the call fails with these words.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A kernel whose errors become those of the runtime, which is no C++ to it.
template <class Kernel>
struct Guarded : Kernel {
  using Kernel::Kernel;

  OrtStatusPtr ComputeV2(OrtKernelContext* given) noexcept {
    try {
      Kernel::compute(Ort::KernelContext(given));
      return nullptr;
    } catch (const std::exception& error) {
      return Ort::Status(error.what(), ORT_INVALID_ARGUMENT).release();
    }
  }
};

// An operator with inputs and outputs of fixed types, the last ``kOptional`` inputs optional; ``Kernel`` has a
// constructor from its attributes and ``compute``.
template <class Kernel, size_t kOptional = 0>
struct Operator : Ort::CustomOpBase<Operator<Kernel, kOptional>, Guarded<Kernel>, true> {
  OrtStatusPtr CreateKernelV2(const OrtApi&, const OrtKernelInfo* info, void** kernel) const noexcept {
    try {
      *kernel = new Guarded<Kernel>(Ort::ConstKernelInfo(info));
      return nullptr;
    } catch (const std::exception& error) {
      return Ort::Status(error.what(), ORT_FAIL).release();
    }
  }
  const char* GetName() const { return Kernel::kName; }
  const char* GetExecutionProviderType() const { return "CPUExecutionProvider"; }
  size_t GetInputTypeCount() const { return std::size(Kernel::kInputs); }
  ONNXTensorElementDataType GetInputType(size_t index) const { return Kernel::kInputs[index]; }
  OrtCustomOpInputOutputCharacteristic GetInputCharacteristic(size_t index) const {
    return index + kOptional < GetInputTypeCount() ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_OPTIONAL;
  }
  size_t GetOutputTypeCount() const { return std::size(Kernel::kOutputs); }
  ONNXTensorElementDataType GetOutputType(size_t index) const { return Kernel::kOutputs[index]; }
};

// How numbers become bytes: round(x / scale) + zero.
struct Levels {
  float scale;
  int32_t zero;

  explicit Levels(Ort::ConstKernelInfo info)
      : scale(info.GetAttribute<float>("scale")), zero(static_cast<int32_t>(info.GetAttribute<int64_t>("zero"))) {}
};

}  // namespace tandem
