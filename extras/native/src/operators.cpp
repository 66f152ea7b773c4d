// The kernels as operators of ONNX Runtime, in the domain "tandem". extras/native/fusing writes graphs with them.
#include <algorithm>
#include <array>
#include <exception>
#include <vector>

#include "kernels.h"
#include "layer_operator.h"
#include "list_operators.h"
#include "search_operators.h"
#include "operator.h"

namespace {

using tandem::elements;
using tandem::kByte;
using tandem::kFloat;
using tandem::Levels;
using tandem::Shape;
using tandem::shape_of;

// Attention of several heads, or of one where keys have no axis of heads. Queries may have any shape: their order counts.
struct Sizes {
  tandem::Attention attention = {};
  bool fit = false;

  Sizes(int64_t queries, const Shape& keys, const Shape& values, float scale) {
    const size_t axes = keys.size();
    if (axes < 3 || axes > 4 || values.size() != axes) return;
    attention = {keys[0], 0, axes == 4 ? keys[1] : 1, keys[axes - 2], keys[axes - 1], values[axes - 1], scale, 0};
    const int64_t row = attention.heads * attention.width;
    fit = attention.sentences > 0 && row > 0 && values[0] == keys[0] && values[axes - 2] == attention.positions &&
          (axes == 3 || values[1] == keys[1]) && queries % (attention.sentences * row) == 0;
    if (fit) attention.rows = queries / (attention.sentences * row);
    attention.stride = row;
  }
};

// How contexts lie: by row as R x 1 x D where ``flat`` is set, else like the queries that a graph has without these
// operators, B x K x H x E, B x K x E, or R x 1 x H x E of history.
struct Contexts {
  float scale;
  bool flat;

  explicit Contexts(Ort::ConstKernelInfo info)
      : scale(info.GetAttribute<float>("scale")), flat(info.GetAttribute<int64_t>("flat") != 0) {}

  Shape by_row(const tandem::Attention& a) const {
    const int64_t rows = a.sentences * a.rows;
    return flat ? Shape{rows, 1, a.heads * a.value_width} : Shape{rows, 1, a.heads, a.value_width};
  }

  Shape by_sentence(const tandem::Attention& a, bool heads) const {
    if (flat) return by_row(a);
    return heads ? Shape{a.sentences, a.rows, a.heads, a.value_width} : Shape{a.sentences, a.rows, a.value_width};
  }
};

struct SourceAttention {
  static constexpr const char* kName = "SourceAttention";
  static constexpr ONNXTensorElementDataType kInputs[] = {kFloat, kFloat, kFloat, kFloat};
  static constexpr ONNXTensorElementDataType kOutputs[] = {kFloat};
  Contexts contexts;

  explicit SourceAttention(Ort::ConstKernelInfo info) : contexts(info) {}

  void compute(const Ort::KernelContext& context) const {
    const auto query = context.GetInput(0), keys = context.GetInput(1), values = context.GetInput(2);
    const auto mask = context.GetInput(3);
    const Shape known = shape_of(keys);
    const Sizes sizes(elements(shape_of(query)), known, shape_of(values), contexts.scale);
    if (!sizes.fit || elements(shape_of(mask)) != sizes.attention.sentences * sizes.attention.positions) {
      throw tandem::Refused("SourceAttention: sizes of query, keys, values and mask do not fit together");
    }
    auto out = context.GetOutput(0, contexts.by_sentence(sizes.attention, known.size() == 4));
    tandem::kernels().source_attention(sizes.attention, query.GetTensorData<float>(), keys.GetTensorData<float>(),
                                       values.GetTensorData<float>(), mask.GetTensorData<float>(),
                                       out.GetTensorMutableData<float>());
  }
};

struct HistoryAttention {
  static constexpr const char* kName = "HistoryAttention";
  static constexpr ONNXTensorElementDataType kInputs[] = {kFloat, kFloat, kFloat, kFloat, kFloat, kFloat};
  static constexpr ONNXTensorElementDataType kOutputs[] = {kFloat};
  Contexts contexts;

  explicit HistoryAttention(Ort::ConstKernelInfo info) : contexts(info) {}

  void compute(const Ort::KernelContext& context) const {
    const auto query = context.GetInput(0), key = context.GetInput(1), value = context.GetInput(2);
    const auto keys = context.GetInput(3), values = context.GetInput(4), history = context.GetInput(5);
    const int64_t queries = elements(shape_of(query));
    const Sizes sizes(queries, shape_of(keys), shape_of(values), contexts.scale);
    const tandem::Attention& a = sizes.attention;
    if (!sizes.fit || a.value_width != a.width || elements(shape_of(key)) != queries ||
        elements(shape_of(value)) != queries ||
        elements(shape_of(history)) != a.sentences * a.rows * a.positions) {
      throw tandem::Refused("HistoryAttention: sizes of query, key, value, pools and history do not fit together");
    }
    auto out = context.GetOutput(0, contexts.by_row(a));
    tandem::kernels().history_attention(a, query.GetTensorData<float>(), key.GetTensorData<float>(),
                                        value.GetTensorData<float>(), keys.GetTensorData<float>(),
                                        values.GetTensorData<float>(), history.GetTensorData<float>(),
                                        out.GetTensorMutableData<float>());
  }
};

// History attention whose new queries, keys and values lie side by side as R x 3D; the keys and values R x H x E that
// go into the pools come out as well.
struct PackedHistoryAttention {
  static constexpr const char* kName = "PackedHistoryAttention";
  static constexpr ONNXTensorElementDataType kInputs[] = {kFloat, kFloat, kFloat, kFloat};
  static constexpr ONNXTensorElementDataType kOutputs[] = {kFloat, kFloat, kFloat};
  Contexts contexts;

  explicit PackedHistoryAttention(Ort::ConstKernelInfo info) : contexts(info) {}

  void compute(const Ort::KernelContext& context) const {
    const auto packed = context.GetInput(0), keys = context.GetInput(1), values = context.GetInput(2);
    const auto history = context.GetInput(3);
    const Shape pool = shape_of(keys), seen = shape_of(history);
    if (pool.size() != 4 || pool != shape_of(values) || seen.size() != 2 || pool[0] < 1 || seen[0] % pool[0] != 0 ||
        seen[1] != pool[2] || elements(shape_of(packed)) != 3 * seen[0] * pool[1] * pool[3]) {
      throw tandem::Refused("PackedHistoryAttention: sizes of rows, pools and history do not fit together");
    }
    const int64_t rows = seen[0], width = pool[1] * pool[3];
    const tandem::Attention attention = {pool[0], rows / pool[0], pool[1], pool[2], pool[3], pool[3], contexts.scale,
                                         3 * width};
    auto out = context.GetOutput(0, contexts.by_row(attention));
    float* const appended[] = {context.GetOutput(1, Shape{rows, pool[1], pool[3]}).GetTensorMutableData<float>(),
                               context.GetOutput(2, Shape{rows, pool[1], pool[3]}).GetTensorMutableData<float>()};
    const float* query = packed.GetTensorData<float>();
    for (int64_t row = 0; row < rows; ++row) {
      for (int part = 0; part < 2; ++part) {
        const float* from = query + (3 * row + 1 + part) * width;
        std::copy(from, from + width, appended[part] + row * width);
      }
    }
    tandem::kernels().history_attention(attention, query, query + width, query + 2 * width,
                                        keys.GetTensorData<float>(), values.GetTensorData<float>(),
                                        history.GetTensorData<float>(), out.GetTensorMutableData<float>());
  }
};

// Attention of a sequence in itself, whose queries, keys and values lie side by side as B x S x 3D.
struct SelfAttention {
  static constexpr const char* kName = "SelfAttention";
  static constexpr ONNXTensorElementDataType kInputs[] = {kFloat, kFloat};
  static constexpr ONNXTensorElementDataType kOutputs[] = {kFloat};
  float scale;
  int64_t heads;

  explicit SelfAttention(Ort::ConstKernelInfo info)
      : scale(info.GetAttribute<float>("scale")), heads(info.GetAttribute<int64_t>("heads")) {}

  void compute(const Ort::KernelContext& context) const {
    const auto packed = context.GetInput(0), mask = context.GetInput(1);
    const Shape shape = shape_of(packed);
    if (shape.size() != 3 || heads < 1 || shape[2] % (3 * heads) != 0 || shape_of(mask) != Shape{shape[0], shape[1]}) {
      throw tandem::Refused("SelfAttention: sizes of rows, heads and mask do not fit together");
    }
    const int64_t width = shape[2] / 3, head = width / heads;
    const tandem::Attention attention = {shape[0], shape[1], heads, shape[1], head, head, scale, 3 * width};
    auto out = context.GetOutput(0, Shape{shape[0], shape[1], width});
    const float* query = packed.GetTensorData<float>();
    tandem::kernels().self_attention(attention, query, query + width, query + 2 * width, mask.GetTensorData<float>(),
                                     out.GetTensorMutableData<float>());
  }
};

struct QuantiseRows {
  static constexpr const char* kName = "QuantiseRows";
  static constexpr ONNXTensorElementDataType kInputs[] = {kFloat};
  static constexpr ONNXTensorElementDataType kOutputs[] = {kByte, kFloat};
  Levels levels;
  float least;

  explicit QuantiseRows(Ort::ConstKernelInfo info) : levels(info), least(info.GetAttribute<float>("least")) {}

  void compute(const Ort::KernelContext& context) const {
    const auto x = context.GetInput(0);
    const Shape shape = shape_of(x);
    if (shape.empty() || shape.back() < 1) throw tandem::Refused("QuantiseRows: rows have no features");
    Shape rows = shape;
    rows.back() = 1;
    auto out = context.GetOutput(0, shape), largest = context.GetOutput(1, rows);
    tandem::kernels().quantise_rows(elements(rows), shape.back(), least, levels.scale, levels.zero,
                                    x.GetTensorData<float>(), out.GetTensorMutableData<uint8_t>(),
                                    largest.GetTensorMutableData<float>());
  }
};

struct Gate {
  static constexpr const char* kName = "Gate";
  static constexpr ONNXTensorElementDataType kInputs[] = {kFloat};
  static constexpr ONNXTensorElementDataType kOutputs[] = {kFloat};

  explicit Gate(Ort::ConstKernelInfo) {}

  void compute(const Ort::KernelContext& context) const {
    const auto x = context.GetInput(0);
    Shape shape = shape_of(x);
    if (shape.empty() || shape.back() < 2 || shape.back() % 2) throw tandem::Refused("Gate: rows are no two halves");
    shape.back() /= 2;
    auto gated = context.GetOutput(0, shape);
    tandem::kernels().gate(elements(shape) / shape.back(), shape.back(), x.GetTensorData<float>(),
                           gated.GetTensorMutableData<float>());
  }
};

// The next cell and what leaves it, of the forget gate's logits, the candidate, the previous cell and the cell's input.
struct Cell {
  static constexpr const char* kName = "Cell";
  static constexpr ONNXTensorElementDataType kInputs[] = {kFloat, kFloat, kFloat, kFloat};
  static constexpr ONNXTensorElementDataType kOutputs[] = {kFloat, kFloat};

  explicit Cell(Ort::ConstKernelInfo) {}

  void compute(const Ort::KernelContext& context) const {
    const Shape shape = shape_of(context.GetInput(0));
    for (size_t i = 1; i < std::size(kInputs); ++i) {
      if (shape_of(context.GetInput(i)) != shape) throw tandem::Refused("Cell: what it reads differs in shape");
    }
    auto cell = context.GetOutput(0, shape), out = context.GetOutput(1, shape);
    tandem::kernels().cell(elements(shape), context.GetInput(0).GetTensorData<float>(),
                           context.GetInput(1).GetTensorData<float>(), context.GetInput(2).GetTensorData<float>(),
                           context.GetInput(3).GetTensorData<float>(), cell.GetTensorMutableData<float>(),
                           out.GetTensorMutableData<float>());
  }
};

// A layer's norm in bytes; with ``kKept`` also as it is.
template <bool kKept>
struct Normed {
  static constexpr const char* kName = kKept ? "QuantiseKeptNorm" : "QuantiseNormed";
  static constexpr ONNXTensorElementDataType kInputs[] = {kFloat, kFloat, kFloat};
  static constexpr std::array<ONNXTensorElementDataType, 1 + kKept> kOutputs = [] {
    std::array<ONNXTensorElementDataType, 1 + kKept> types{};
    types[0] = kByte;
    if constexpr (kKept) types[1] = kFloat;
    return types;
  }();
  Levels levels;
  float epsilon;

  explicit Normed(Ort::ConstKernelInfo info) : levels(info), epsilon(info.GetAttribute<float>("epsilon")) {}

  void compute(const Ort::KernelContext& context) const {
    const auto x = context.GetInput(0), gain = context.GetInput(1), bias = context.GetInput(2);
    const Shape shape = shape_of(x);
    if (shape.empty() || shape.back() < 1 || elements(shape_of(gain)) != shape.back() ||
        elements(shape_of(bias)) != shape.back()) {
      throw tandem::Refused("Normed: sizes of rows, gain and bias do not fit together");
    }
    auto out = context.GetOutput(0, shape);
    float* kept = kKept ? context.GetOutput(kKept, shape).GetTensorMutableData<float>() : nullptr;
    tandem::kernels().quantise_normed(elements(shape) / shape.back(), shape.back(), epsilon, levels.scale, levels.zero,
                                      gain.GetTensorData<float>(), bias.GetTensorData<float>(),
                                      x.GetTensorData<float>(), kept, out.GetTensorMutableData<uint8_t>());
  }
};

template <class Kernel, size_t kOptional = 0>
const tandem::Operator<Kernel, kOptional>* operator_of() {
  static const tandem::Operator<Kernel, kOptional> one;
  return &one;
}

template <ONNXTensorElementDataType kIn, ONNXTensorElementDataType kOut>
void add_product(Ort::CustomOpDomain* domain) {
  using Kernel = tandem::LayerProduct<kIn, kOut>;
  domain->Add(operator_of<Kernel, Kernel::kOptional>());
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// The kernels in use, by name, and those of another name instead: 0 where this processor cannot run them.
EXPORTED const char* TandemKernels() { return tandem::kernels().name; }
// The products of this processor by name, or null where it has none that are fast and exact.
EXPORTED const char* TandemProducts() { return tandem::products() ? tandem::products()->name : nullptr; }
EXPORTED int TandemChoose(const char* name) { return tandem::choose(name); }

EXPORTED OrtStatus* RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  const OrtApi* api = base->GetApi(ORT_API_VERSION);
  if (api == nullptr) {
    // Without a version that both know there is no way to make a status: the caller sees an operator that is missing.
    return nullptr;
  }
  Ort::InitApi(api);
  try {
    static const Ort::CustomOpDomain domain = [] {
      Ort::CustomOpDomain made("tandem");
      made.Add(operator_of<SourceAttention>());
      made.Add(operator_of<HistoryAttention>());
      made.Add(operator_of<PackedHistoryAttention>());
      made.Add(operator_of<SelfAttention>());
      made.Add(operator_of<tandem::BestContinuations>());
      made.Add(operator_of<tandem::BestListed>());
      made.Add(operator_of<QuantiseRows>());
      made.Add(operator_of<Gate>());
      made.Add(operator_of<Cell>());
      made.Add(operator_of<Normed<false>>());
      made.Add(operator_of<Normed<true>>());
      made.Add(operator_of<tandem::PackListed>());
      made.Add(operator_of<tandem::ListedProduct, tandem::ListedProduct::kOptional>());
      made.Add(operator_of<tandem::BestOfProduct<kFloat>, 2>());
      made.Add(operator_of<tandem::BestOfProduct<kByte>, 2>());
      add_product<kFloat, kFloat>(&made);
      add_product<kFloat, kByte>(&made);
      add_product<kByte, kFloat>(&made);
      add_product<kByte, kByte>(&made);
      return made;
    }();
    return api->AddCustomOpDomain(options, domain);
  } catch (const std::exception& error) {
    return Ort::Status(error.what(), ORT_FAIL).release();
  }
}
