// The kernels as operators of ONNX Runtime, in the domain "tandem". service/runtimes/fusing.py writes graphs with them.
#define ORT_API_MANUAL_INIT
#include <onnxruntime_cxx_api.h>
#undef ORT_API_MANUAL_INIT

#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <vector>

#include "kernels.h"

namespace {

using Shape = std::vector<int64_t>;
constexpr ONNXTensorElementDataType kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
constexpr ONNXTensorElementDataType kInt = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
constexpr ONNXTensorElementDataType kByte = ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8;

Shape shape_of(const Ort::ConstValue& value) { return value.GetTensorTypeAndShapeInfo().GetShape(); }

int64_t elements(const Shape& shape) {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

Ort::Status refused(const char* what) { return Ort::Status(what, ORT_INVALID_ARGUMENT); }

// An operator with inputs and outputs of fixed types; ``Kernel`` has a constructor from its attributes and ComputeV2.
template <class Kernel>
struct Operator : Ort::CustomOpBase<Operator<Kernel>, Kernel, true> {
  OrtStatusPtr CreateKernelV2(const OrtApi&, const OrtKernelInfo* info, void** kernel) const {
    try {
      *kernel = new Kernel(Ort::ConstKernelInfo(info));
      return nullptr;
    } catch (const std::exception& error) {
      return Ort::Status(error.what(), ORT_FAIL).release();
    }
  }
  const char* GetName() const { return Kernel::kName; }
  const char* GetExecutionProviderType() const { return "CPUExecutionProvider"; }
  size_t GetInputTypeCount() const { return std::size(Kernel::kInputs); }
  ONNXTensorElementDataType GetInputType(size_t index) const { return Kernel::kInputs[index]; }
  size_t GetOutputTypeCount() const { return std::size(Kernel::kOutputs); }
  ONNXTensorElementDataType GetOutputType(size_t index) const { return Kernel::kOutputs[index]; }
};

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

  Ort::Status ComputeV2(OrtKernelContext* given) {
    Ort::KernelContext context(given);
    const auto query = context.GetInput(0), keys = context.GetInput(1), values = context.GetInput(2);
    const auto mask = context.GetInput(3);
    const Shape known = shape_of(keys);
    const Sizes sizes(elements(shape_of(query)), known, shape_of(values), contexts.scale);
    if (!sizes.fit || elements(shape_of(mask)) != sizes.attention.sentences * sizes.attention.positions) {
      return refused("SourceAttention: sizes of query, keys, values and mask do not fit together");
    }
    auto out = context.GetOutput(0, contexts.by_sentence(sizes.attention, known.size() == 4));
    tandem::kernels().source_attention(sizes.attention, query.GetTensorData<float>(), keys.GetTensorData<float>(),
                                       values.GetTensorData<float>(), mask.GetTensorData<float>(),
                                       out.GetTensorMutableData<float>());
    return Ort::Status(nullptr);
  }
};

struct HistoryAttention {
  static constexpr const char* kName = "HistoryAttention";
  static constexpr ONNXTensorElementDataType kInputs[] = {kFloat, kFloat, kFloat, kFloat, kFloat, kFloat};
  static constexpr ONNXTensorElementDataType kOutputs[] = {kFloat};
  Contexts contexts;

  explicit HistoryAttention(Ort::ConstKernelInfo info) : contexts(info) {}

  Ort::Status ComputeV2(OrtKernelContext* given) {
    Ort::KernelContext context(given);
    const auto query = context.GetInput(0), key = context.GetInput(1), value = context.GetInput(2);
    const auto keys = context.GetInput(3), values = context.GetInput(4), history = context.GetInput(5);
    const int64_t queries = elements(shape_of(query));
    const Sizes sizes(queries, shape_of(keys), shape_of(values), contexts.scale);
    const tandem::Attention& a = sizes.attention;
    if (!sizes.fit || a.value_width != a.width || elements(shape_of(key)) != queries ||
        elements(shape_of(value)) != queries ||
        elements(shape_of(history)) != a.sentences * a.rows * a.positions) {
      return refused("HistoryAttention: sizes of query, key, value, pools and history do not fit together");
    }
    auto out = context.GetOutput(0, contexts.by_row(a));
    tandem::kernels().history_attention(a, query.GetTensorData<float>(), key.GetTensorData<float>(),
                                        value.GetTensorData<float>(), keys.GetTensorData<float>(),
                                        values.GetTensorData<float>(), history.GetTensorData<float>(),
                                        out.GetTensorMutableData<float>());
    return Ort::Status(nullptr);
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

  Ort::Status ComputeV2(OrtKernelContext* given) {
    Ort::KernelContext context(given);
    const auto packed = context.GetInput(0), keys = context.GetInput(1), values = context.GetInput(2);
    const auto history = context.GetInput(3);
    const Shape pool = shape_of(keys), seen = shape_of(history);
    if (pool.size() != 4 || pool != shape_of(values) || seen.size() != 2 || pool[0] < 1 || seen[0] % pool[0] != 0 ||
        seen[1] != pool[2] || elements(shape_of(packed)) != 3 * seen[0] * pool[1] * pool[3]) {
      return refused("PackedHistoryAttention: sizes of rows, pools and history do not fit together");
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
    return Ort::Status(nullptr);
  }
};

struct BestContinuations {
  static constexpr const char* kName = "BestContinuations";
  // logits, score, banned, forced, count, and anything whose first axis is that of sentences
  static constexpr ONNXTensorElementDataType kInputs[] = {kFloat, kFloat, kInt, kInt, kInt, kFloat};
  static constexpr ONNXTensorElementDataType kOutputs[] = {kFloat, kInt, kInt, kFloat};

  explicit BestContinuations(Ort::ConstKernelInfo) {}

  Ort::Status ComputeV2(OrtKernelContext* given) {
    Ort::KernelContext context(given);
    const auto logits = context.GetInput(0), score = context.GetInput(1), banned = context.GetInput(2);
    const auto forced = context.GetInput(3), count = context.GetInput(4);
    const Shape shape = shape_of(logits), bans = shape_of(banned), by_sentence = shape_of(context.GetInput(5));
    if (shape.size() != 2 || bans.size() != 2 || by_sentence.empty() || by_sentence[0] < 1 ||
        shape[0] % by_sentence[0] != 0 || bans[0] != shape[0]) {
      return refused("BestContinuations: sizes of logits, bans and sentences do not fit together");
    }
    const tandem::Search search = {by_sentence[0], shape[0] / by_sentence[0], shape[1], *count.GetTensorData<int64_t>(),
                                   bans[1]};
    if (search.candidates < 1 || search.candidates > search.rows * search.vocabulary) {
      return refused("BestContinuations: count must be at least 1 and at most the continuations of a sentence");
    }
    const int64_t* first_ban = bans[1] ? banned.GetTensorData<int64_t>() : nullptr;
    const Shape found = {search.sentences, search.candidates};
    auto scores = context.GetOutput(0, found), tokens = context.GetOutput(1, found);
    auto parents = context.GetOutput(2, found), total = context.GetOutput(3, Shape{shape[0]});
    tandem::kernels().best_continuations(
        search, logits.GetTensorData<float>(), score.GetTensorData<float>(), first_ban, forced.GetTensorData<int64_t>(),
        scores.GetTensorMutableData<float>(), tokens.GetTensorMutableData<int64_t>(),
        parents.GetTensorMutableData<int64_t>(), total.GetTensorMutableData<float>());
    return Ort::Status(nullptr);
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

  Ort::Status ComputeV2(OrtKernelContext* given) {
    Ort::KernelContext context(given);
    const auto logits = context.GetInput(0), mean = context.GetInput(1), score = context.GetInput(2);
    const auto banned = context.GetInput(3), forced = context.GetInput(4), count = context.GetInput(5);
    const auto entries = context.GetInput(6), listed = context.GetInput(7);
    const Shape shape = shape_of(logits), bans = shape_of(banned), lists = shape_of(listed);
    if (shape.size() != 2 || bans.size() != 2 || lists.size() != 2 || lists[0] < 1 || shape[0] % lists[0] != 0 ||
        lists[1] != shape[1] || bans[0] != shape[0] || elements(shape_of(mean)) != shape[0] || shape[1] < 1) {
      return refused("BestListed: sizes of logits, bans and lists do not fit together");
    }
    const int64_t rows = shape[0] / lists[0], wanted = *count.GetTensorData<int64_t>();
    if (wanted < 1) return refused("BestListed: count must be at least 1");
    const tandem::Search search = {lists[0], rows, shape[1], std::min(wanted, rows * shape[1]), bans[1]};
    const int64_t* first_ban = bans[1] ? banned.GetTensorData<int64_t>() : nullptr;
    const Shape found = {search.sentences, search.candidates};
    auto scores = context.GetOutput(0, found), tokens = context.GetOutput(1, found);
    auto parents = context.GetOutput(2, found), total = context.GetOutput(3, Shape{shape[0]});
    tandem::kernels().best_listed(
        search, size, spread, logits.GetTensorData<float>(), mean.GetTensorData<float>(), score.GetTensorData<float>(),
        first_ban, forced.GetTensorData<int64_t>(), entries.GetTensorData<int64_t>(), listed.GetTensorData<float>(),
        scores.GetTensorMutableData<float>(), tokens.GetTensorMutableData<int64_t>(),
        parents.GetTensorMutableData<int64_t>(), total.GetTensorMutableData<float>());
    return Ort::Status(nullptr);
  }
};

struct QuantiseRows {
  static constexpr const char* kName = "QuantiseRows";
  static constexpr ONNXTensorElementDataType kInputs[] = {kFloat};
  static constexpr ONNXTensorElementDataType kOutputs[] = {kByte, kFloat};
  float least, scale;
  int64_t zero;

  explicit QuantiseRows(Ort::ConstKernelInfo info)
      : least(info.GetAttribute<float>("least")),
        scale(info.GetAttribute<float>("scale")),
        zero(info.GetAttribute<int64_t>("zero")) {}

  Ort::Status ComputeV2(OrtKernelContext* given) {
    Ort::KernelContext context(given);
    const auto x = context.GetInput(0);
    const Shape shape = shape_of(x);
    if (shape.empty() || shape.back() < 1) return refused("QuantiseRows: rows have no features");
    Shape rows = shape;
    rows.back() = 1;
    auto levels = context.GetOutput(0, shape), largest = context.GetOutput(1, rows);
    tandem::kernels().quantise_rows(elements(rows), shape.back(), least, scale, static_cast<int32_t>(zero),
                                    x.GetTensorData<float>(), levels.GetTensorMutableData<uint8_t>(),
                                    largest.GetTensorMutableData<float>());
    return Ort::Status(nullptr);
  }
};

struct Gate {
  static constexpr const char* kName = "Gate";
  static constexpr ONNXTensorElementDataType kInputs[] = {kFloat};
  static constexpr ONNXTensorElementDataType kOutputs[] = {kFloat};

  explicit Gate(Ort::ConstKernelInfo) {}

  Ort::Status ComputeV2(OrtKernelContext* given) {
    Ort::KernelContext context(given);
    const auto x = context.GetInput(0);
    Shape shape = shape_of(x);
    if (shape.empty() || shape.back() < 2 || shape.back() % 2) return refused("Gate: rows are no two halves");
    shape.back() /= 2;
    auto gated = context.GetOutput(0, shape);
    tandem::kernels().gate(elements(shape) / shape.back(), shape.back(), x.GetTensorData<float>(),
                           gated.GetTensorMutableData<float>());
    return Ort::Status(nullptr);
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
  float epsilon, scale;
  int64_t zero;

  explicit Normed(Ort::ConstKernelInfo info)
      : epsilon(info.GetAttribute<float>("epsilon")),
        scale(info.GetAttribute<float>("scale")),
        zero(info.GetAttribute<int64_t>("zero")) {}

  Ort::Status ComputeV2(OrtKernelContext* given) {
    Ort::KernelContext context(given);
    const auto x = context.GetInput(0), gain = context.GetInput(1), bias = context.GetInput(2);
    const Shape shape = shape_of(x);
    if (shape.empty() || shape.back() < 1 || elements(shape_of(gain)) != shape.back() ||
        elements(shape_of(bias)) != shape.back()) {
      return refused("Normed: sizes of rows, gain and bias do not fit together");
    }
    auto levels = context.GetOutput(0, shape);
    float* kept = kKept ? context.GetOutput(kKept, shape).GetTensorMutableData<float>() : nullptr;
    tandem::kernels().quantise_normed(elements(shape) / shape.back(), shape.back(), epsilon, scale,
                                      static_cast<int32_t>(zero), gain.GetTensorData<float>(),
                                      bias.GetTensorData<float>(), x.GetTensorData<float>(), kept,
                                      levels.GetTensorMutableData<uint8_t>());
    return Ort::Status(nullptr);
  }
};

template <class Kernel>
const Operator<Kernel>* operator_of() {
  static const Operator<Kernel> one;
  return &one;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// The kernels in use, by name, and those of another name instead: 0 where this processor cannot run them.
EXPORTED const char* TandemKernels() { return tandem::kernels().name; }
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
      made.Add(operator_of<BestContinuations>());
      made.Add(operator_of<BestListed>());
      made.Add(operator_of<QuantiseRows>());
      made.Add(operator_of<Gate>());
      made.Add(operator_of<Normed<false>>());
      made.Add(operator_of<Normed<true>>());
      return made;
    }();
    return api->AddCustomOpDomain(options, domain);
  } catch (const std::exception& error) {
    return Ort::Status(error.what(), ORT_FAIL).release();
  }
}
