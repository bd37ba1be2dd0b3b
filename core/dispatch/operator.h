// Operator: the object that a call goes through, first its layers, then its table of kernels by
// device, layout and dtype.
//
//   generated code:  Tensor exp(const Tensor& self) { return dispatch<ops::exp>(self); }
//   a kernel file:   const auto registered = register_kernels<ops::gather, DeviceType::CPU>(
//                        []<class T>() { return &gather_cpu<T>; });
//
// An operator handle is a static object, so a call is a mask test and an indexed load: no look-up
// by name, no lock.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/layers.h"
#include "core/dispatch/borrowed_value.h"
#include "core/dispatch/expression.h"
#include "core/dispatch/value.h"
#include "core/tensor/tensor.h"

namespace treadle {

class Operator;
namespace schema {
struct FunctionSchema;
}

// The source of a cell of a kernel table; a smaller one wins over a larger one.
enum class KernelSource : uint8_t {
  Exact = 0,
  DeviceLayout = 1,
  Generated = 2,
  Composite = 3,
  Fallback = 4
};
std::string_view name_of(KernelSource source);

struct KernelOrigin {
  KernelSource source = KernelSource::Generated;
  const char* file = "";
  int line = 0;
  const char* name = "";  // the kernel's name as in the YAML, or how it came to be
};

// A boxed function takes its arguments from the stack (last argument on top) and leaves its results
// there. `op` says which operator was called.
using BoxedFunction = void (*)(const Operator& op, Stack& stack);

// A kernel that serves any form of an operator by a boxed call. The context is the kernel's own: it
// comes back with each call, so a kernel is found by no look-up.
struct BoxedKernel {
  using Function = void (*)(void* context, const Operator& op, Stack& stack);
  // Where the kernel fills tensors and returns nothing: the arguments and then the tensors, all
  // borrowed. May be null; `function` does the same with a stack.
  using Fill = void (*)(void* context, const Operator& op, ArrayRef<BorrowedValue> arguments);

  Function function = nullptr;
  void* context = nullptr;
  Fill fill = nullptr;

  void operator()(const Operator& op, Stack& stack) const { function(context, op, stack); }
};

// A boxed function as a kernel, which needs no context: &boxed_kernel<&cpu_fallback>.
namespace detail {
template <BoxedFunction function>
void call_without_context(void*, const Operator& op, Stack& stack) {
  function(op, stack);
}
}  // namespace detail
template <BoxedFunction function>
inline constexpr BoxedKernel boxed_kernel{&detail::call_without_context<function>};

// The kernels of one operator for one device and layout, by dtype. Boxed ones live for as long as
// the program.
struct KernelRow {
  std::array<void*, kMaxScalarTypes> kernels{};             // unboxed; null where there is none
  std::array<const BoxedKernel*, kMaxScalarTypes> boxed{};  // used where the unboxed one is null
  std::array<const KernelOrigin*, kMaxScalarTypes> places{};
};

// Shared by the forms (functional, in-place, out=) of one entry. Rows are replaced, never changed,
// so a call needs no lock.
class KernelTable {
 public:
  constexpr KernelTable() = default;
  // With rows made at compile time for strided CPU tensors.
  constexpr explicit KernelTable(KernelRow* cpu_strided)
      : strided_{std::atomic<KernelRow*>(cpu_strided)} {}

  void* find(Device device, Layout layout, ScalarType dtype) const {
    const KernelRow* row = this->row(device.type, layout);
    return row && !is_stored(dtype) ? row->kernels[static_cast<size_t>(dtype)] : nullptr;
  }
  const KernelRow* row(DeviceType device, Layout layout) const {
    const size_t d = static_cast<size_t>(device);
    if (layout == Layout::Strided) [[likely]]
      return strided_[d].load(std::memory_order_acquire);
    const OtherLayouts* others = others_.load(std::memory_order_acquire);
    return others ? others->rows[d][static_cast<size_t>(layout)].load(std::memory_order_acquire)
                  : nullptr;
  }
  // The row of another layout than strided: the device's, or that for all devices.
  const KernelRow* layout_row(DeviceType device, Layout layout) const {
    const KernelRow* const own = row(device, layout);
    return own ? own : row(kEveryDevice, layout);
  }
  // Replaces a row. Under the dispatcher's lock; `row` lives for as long as the program.
  void publish(DeviceType device, Layout layout, KernelRow* row);

 private:
  // Made when the first kernel of another layout comes: most operators never have one.
  struct OtherLayouts {
    std::atomic<KernelRow*> rows[kMaxDeviceTypes + 1][kMaxLayouts]{};
  };
  std::atomic<KernelRow*> strided_[kMaxDeviceTypes]{};
  std::atomic<OtherLayouts*> others_{nullptr};
};

enum class Form : uint8_t { Functional, InPlace, Out };
enum class OperatorKind : uint8_t { Pointwise, Reduce, Kernel, Returns, View, Composite, Mutating };
std::string_view name_of(OperatorKind kind);

// The calls that layers below autograd see: always that of the operator; those of its parts where
// autograd records them, else that of the operator; always those of its parts.
enum class Seen : uint8_t { Always, Unrecorded, Never };

// The dtypes that an entry takes on a device.
struct DtypeRow {
  const char* device;  // "cpu"; null: on every device that has no row of its own
  uint32_t dtypes;     // a bit for each ScalarType
};

// Constant data about an entry of native_functions.yaml, which its forms share.
struct EntryInfo {
  Operator* op;  // the entry's first form
  OperatorKind kind;
  Seen seen = Seen::Always;
  bool data_free = false;  // views and composites: no kernel table needed
  // A bit for each argument whose elements the operator moves without a look at them: these may be
  // of a type that only stores.
  uint64_t moves = 0;
  const char* file = "";
  const int* line_place;  // kept apart, so that an edit that moves entries rebuilds one object
  std::span<const DtypeRow> dtypes{};
  const Expression* pointwise = nullptr;      // null unless the kind is Pointwise
  const ReduceExpressions* reduce = nullptr;  // null unless the kind is Reduce
  std::span<const char* const> checks{};      // conditions of the contract as written, for people
  const char* shape = "";                     // the shape rule as written, for people

  int line() const { return *line_place; }
};

// Constant data about one form of an operator.
struct OperatorInfo {
  const char* name;       // "aten::add_.Tensor"
  const char* base_name;  // "add_": what messages call it
  const char* schema;     // as printed by the grammar
  const EntryInfo* entry;
  Form form;
  // Calls what a composite is made of, with all layers; null for others.
  BoxedFunction parts = nullptr;
};

class Operator {
 public:
  // `call_boxed` calls the operator, layers included, with arguments from the stack.
  constexpr Operator(const OperatorInfo* info, KernelTable* table, BoxedFunction call_boxed,
                     LayerMask always)
      : info_(info), table_(table), call_boxed_(call_boxed), always_(always) {}
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  const OperatorInfo& info() const { return *info_; }
  const EntryInfo& entry() const { return *info_->entry; }
  // The schema as the grammar reads it, parsed at the first call. Lives for as long as the program.
  const schema::FunctionSchema& schema() const {
    const schema::FunctionSchema* const parsed = schema_.load(std::memory_order_acquire);
    return parsed ? *parsed : parse_schema();
  }
  KernelTable& table() const { return *table_; }
  bool has_table() const { return table_ != nullptr; }
  void call_boxed(Stack& stack) const { call_boxed_(*this, stack); }
  // Tells operators of one making from others.
  bool is_called_by(BoxedFunction entry) const { return call_boxed_ == entry; }

  // Layers a call whose tensors carry `tensors` must go through.
  LayerMask active_layers(LayerMask tensors) const {
    const LayerState& state = layer_state();
    return static_cast<LayerMask>((tensors | state.included | always_) & ~state.excluded &
                                  layers());
  }
  void* layer_function(Layer layer) const { return layer_functions_[static_cast<size_t>(layer)]; }
  const BoxedKernel* layer_boxed(Layer layer) const {
    return layer_boxed_[static_cast<size_t>(layer)];
  }
  // Sets the function of this operator on `layer`. One of its own wins over a fallback for all
  // operators; of two of its own the second is rejected with a RuntimeError that names both
  // places. `boxed` lives for as long as the program.
  void set_layer(Layer layer, void* function, const BoxedKernel* boxed, KernelOrigin place);
  const KernelOrigin& layer_place(Layer layer) const {
    return layer_places_[static_cast<size_t>(layer)];
  }
  LayerMask layers() const { return layers_.load(std::memory_order_acquire); }

 protected:
  // The schema, where it was parsed before; it lives for as long as the operator.
  void set_schema(const schema::FunctionSchema& schema) { schema_.store(&schema); }

 private:
  const schema::FunctionSchema& parse_schema() const;

  const OperatorInfo* info_;
  KernelTable* table_;
  BoxedFunction call_boxed_;
  mutable std::atomic<const schema::FunctionSchema*> schema_{nullptr};
  std::atomic<LayerMask> layers_{0};
  LayerMask always_;
  std::array<void*, kNumLayers> layer_functions_{};
  std::array<const BoxedKernel*, kNumLayers> layer_boxed_{};
  std::array<KernelOrigin, kNumLayers> layer_places_{};
};

// ---- calling ----

namespace detail {

inline LayerMask layers_in(const Tensor& t) { return t.layers(); }
inline LayerMask layers_in(TensorList list) {
  LayerMask m = 0;
  for (const Tensor& t : list) m |= t.layers();
  return m;
}
template <class T>
constexpr LayerMask layers_in(const T&) {
  return 0;
}

// Boxing: how a C++ argument becomes a Value and back.
template <class T>
struct Box {
  static Value to(const T& v) { return Value(v); }
  static const T& from(const Value& v) { return v.as<T>(); }
};
template <>
struct Box<Tensor> {
  static Value to(const Tensor& t) { return t.defined() ? Value(t) : Value(); }
  static Tensor from(const Value& v) { return v.is_none() ? Tensor() : v.as<Tensor>(); }
};
template <>
struct Box<Generator> {
  static Value to(const Generator& g) { return g ? Value(g) : Value(); }
  static Generator from(const Value& v) { return v.is_none() ? Generator() : v.as<Generator>(); }
};
template <>
struct Box<std::string_view> {
  static Value to(std::string_view s) { return Value(std::string(s)); }
  static std::string_view from(const Value& v) { return v.as<std::string>(); }
};
template <>
struct Box<IntList> {
  static Value to(IntList l) { return Value(l.vec()); }
  static IntList from(const Value& v) { return v.as<Value::Ints>(); }
};
template <>
struct Box<DoubleList> {
  static Value to(DoubleList l) { return Value(l.vec()); }
  static DoubleList from(const Value& v) { return v.as<Value::Doubles>(); }
};
template <>
struct Box<TensorList> {
  static Value to(TensorList l) { return Value(l.vec()); }
  static TensorList from(const Value& v) { return v.as<Value::Tensors>(); }
};
template <size_t N>
struct Box<std::array<bool, N>> {
  static Value to(const std::array<bool, N>& a) { return Value(Value::Bools(a.begin(), a.end())); }
  static std::array<bool, N> from(const Value& v) {
    const Value::Bools& b = v.as<Value::Bools>();
    std::array<bool, N> a{};
    for (size_t i = 0; i < N && i < b.size(); ++i) a[i] = b[i];
    return a;
  }
};
template <class T>
struct Box<std::optional<T>> {
  static Value to(const std::optional<T>& o) { return o ? Box<T>::to(*o) : Value(); }
  static std::optional<T> from(const Value& v) {
    if (v.is_none()) return std::nullopt;
    return std::optional<T>(Box<T>::from(v));
  }
};

// Hundreds of signatures box and unbox values of 25 types. The code of each type is compiled once:
// inlined, it was a quarter of the library and of the time to compile the operators.
template <class T>
[[gnu::noinline]] void push(Stack& stack, const T& value) {
  stack.push_back(Box<T>::to(value));
}
template <class T>
[[gnu::noinline]] decltype(Box<T>::from(std::declval<const Value&>())) value_at(const Stack& stack,
                                                                                size_t i) {
  return Box<T>::from(stack[i]);
}

// Where the last `n` values of a stack begin; TypeError if there are fewer.
size_t first_argument(const Stack& stack, size_t n);
// Puts results in place of the values from `first` on.
void replace_arguments(Stack& stack, size_t first, Stack&& results);

template <class R>
void push_result(Stack& stack, const R& r) {
  push<R>(stack, r);
}
template <class... Ts>
void push_result(Stack& stack, const std::tuple<Ts...>& r) {
  std::apply([&](const auto&... part) { (push_result(stack, part), ...); }, r);
}

template <class R>
struct PopResult {
  static R pop(Stack& stack, size_t at) { return value_at<R>(stack, at); }
};
template <class... Ts>
struct PopResult<std::tuple<Ts...>> {
  static std::tuple<Ts...> pop(Stack& stack, size_t at) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<Ts...>(PopResult<Ts>::pop(stack, at + I)...);
    }
    (std::index_sequence_for<Ts...>());
  }
};

}  // namespace detail

// Calls an unboxed function of type Signature with arguments from the stack, and leaves its results
// there.
template <class Signature>
struct BoxedCall;
template <class R, class... Args>
struct BoxedCall<R(Args...)> {
  [[gnu::noinline]] static void run(void* function, Stack& stack) {
    auto* f = reinterpret_cast<R (*)(Args...)>(function);
    const size_t first = detail::first_argument(stack, sizeof...(Args));
    Stack results;
    [&]<size_t... I>(std::index_sequence<I...>) {
      if constexpr (std::is_void_v<R>)
        f(detail::value_at<std::decay_t<Args>>(stack, first + I)...);
      else
        detail::push_result(results, f(detail::value_at<std::decay_t<Args>>(stack, first + I)...));
    }
    (std::index_sequence_for<Args...>());
    detail::replace_arguments(stack, first, std::move(results));
  }
  // The other way: boxes arguments for a boxed kernel and unboxes its results.
  static R through(const BoxedKernel& kernel, const Operator& op,
                   std::decay_t<Args> const&... args) {
    if constexpr (std::is_void_v<R> && sizeof...(Args) > 0 &&
                  (Borrowable<std::decay_t<Args>> && ...)) {
      if (kernel.fill != nullptr) {
        const BorrowedValue arguments[] = {borrowed(args)...};
        kernel.fill(kernel.context, op, {arguments, sizeof...(Args)});
        return;
      }
    }
    Stack stack;
    stack.reserve(sizeof...(Args));
    (detail::push<std::decay_t<Args>>(stack, args), ...);
    kernel(op, stack);
    if constexpr (!std::is_void_v<R>) return detail::PopResult<R>::pop(stack, 0);
  }
};

// The boxed entry of a C++ function, for an Operator's constant data: boxed_entry<Tensor(const
// Tensor&), &aten::exp>.
template <class Signature, auto* function>
void boxed_entry(const Operator&, Stack& stack) {
  BoxedCall<Signature>::run(reinterpret_cast<void*>(static_cast<Signature*>(function)), stack);
}

// Calls the function of the outermost layer in `active`. An operator's `layered()` calls it, and is
// compiled once: the code that boxes arguments is long, and callers rarely need it.
template <class Signature>
struct LayerCall;
template <class R, class... Args>
struct LayerCall<R(Args...)> {
  [[gnu::noinline]] static R call(const Operator& op, LayerMask active,
                                  std::decay_t<Args> const&... args) {
    const auto layer = static_cast<Layer>(std::countr_zero(active));
    if (void* f = op.layer_function(layer)) return reinterpret_cast<R (*)(Args...)>(f)(args...);
    return BoxedCall<R(Args...)>::through(*op.layer_boxed(layer), op, args...);
  }
};

// The way in to every operator: the outermost active layer, else the operator's base (contract,
// outputs, kernel).
template <class Op, class... Args>
inline auto dispatch(const Args&... args) {
  const LayerMask active = Op::op.active_layers((LayerMask{0} | ... | detail::layers_in(args)));
  if (active) [[unlikely]]
    return Op::layered(active, args...);
  return Op::base(args...);
}

// Calls the operator below `layer`. Operators that it is composed of still pass through the layer.
template <class Op, class... Args>
inline auto dispatch_below(Layer layer, const Args&... args) {
  const auto passed = static_cast<LayerMask>((layer_bit(layer) << 1) - 1);
  const auto active = static_cast<LayerMask>(
      Op::op.active_layers((LayerMask{0} | ... | detail::layers_in(args))) & ~passed);
  if (active) return Op::layered(active, args...);
  return Op::base(args...);
}

// ---- registration ----

// Where a registration stands. std::source_location says the same, but clang knows it from
// version 16 on only.
struct SourceLocation {
  const char* file;
  int line;
  static constexpr SourceLocation here(const char* file = __builtin_FILE(),
                                       int line = __builtin_LINE()) {
    return {file, line};
  }
};

// The result of a registration at load time; errors met there are kept and raised by
// check_registrations().
struct Registration {};

// Fills the cells whose kernel is not null.
Registration register_row(Operator& op, DeviceType device, Layout layout,
                          const std::array<void*, kMaxScalarTypes>& kernels,
                          const KernelOrigin& place);

template <class Op, DeviceType device, Layout layout = Layout::Strided, class Factory>
Registration register_kernels(Factory factory, const char* name = "",
                              SourceLocation at = SourceLocation::here()) {
  std::array<void*, kMaxScalarTypes> kernels{};
  [&]<class... Ts>(TypeList<Ts...>) {
    ((kernels[static_cast<size_t>(scalar_type_of<Ts>)] = reinterpret_cast<void*>(
          static_cast<typename Op::Kernel*>(factory.template operator()<Ts>()))),
     ...);
  }(typename Op::template Types<device>());
  return register_row(Op::op, device, layout, kernels,
                      KernelOrigin{KernelSource::DeviceLayout, at.file, at.line, name});
}

Registration register_layer_function(Operator& op, Layer layer, void* function,
                                     const KernelOrigin& place);

template <class Op>
Registration register_layer(Layer layer, typename Op::Signature* function,
                            SourceLocation at = SourceLocation::here()) {
  return register_layer_function(Op::op, layer, reinterpret_cast<void*>(function),
                                 KernelOrigin{KernelSource::Generated, at.file, at.line, ""});
}

// Raised when no cell answers: names the operator, what was asked and what exists.
[[noreturn]] void no_kernel(const Operator& op, Device device, Layout layout, ScalarType dtype);
// The boxed kernel for a cell with no unboxed one: of the row, or the device's fallback; null when
// neither exists.
const BoxedKernel* find_boxed(const Operator& op, Device device, Layout layout, ScalarType dtype);

}  // namespace treadle
