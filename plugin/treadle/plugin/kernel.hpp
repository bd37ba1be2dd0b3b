// Kernels and operators made of C++ functions with natural parameters. A function that does not fit
// the operator's schema is rejected at its registration, with a message that shows both signatures.
//
//   void mm(const Tensor& self, const Tensor& mat2, const Tensor& out) { ... }
//   register_kernel<&mm>("mm(Tensor self, Tensor mat2) -> Tensor", device);
//
// The parameters are the operator's arguments (value.hpp lists the types that each may have),
// followed by a tensor for each result. Result tensors are contiguous, have the right shape and
// dtype, and are filled by the function. The function returns the results instead where only the
// kernel knows their shapes, and in new operators. Where an operator writes its first argument
// (_fill_), the function writes that tensor.
#pragma once

#include "treadle/plugin/operator.hpp"

#pragma GCC visibility push(hidden)

namespace treadle::plugin {

namespace detail {

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... P>
struct Signature<R (*)(P...)> {
  using Result = R;
  using Parameters = std::tuple<std::decay_t<P>...>;
};
template <class R, class... P>
struct Signature<R (*)(P...) noexcept> : Signature<R (*)(P...)> {};
template <class F, class R, class... P>
struct Signature<R (F::*)(P...) const> : Signature<R (*)(P...)> {};
template <class F, class R, class... P>
struct Signature<R (F::*)(P...)> : Signature<R (*)(P...)> {};

// One side of a comparison: the parameters or the results of a function.
struct Side {
  const char* name;
  bool (*fits)(int32_t tag);
  bool reads_none;
};
template <class T>
Side side_of() {
  return {Convert<T>::name, &Convert<T>::fits, reads_none<T>};
}
template <class Tuple>
struct Sides;
template <class... T>
struct Sides<std::tuple<T...>> {
  static std::vector<Side> list() { return {side_of<T>()...}; }
};
template <class R>
struct ResultSides : Sides<std::tuple<R>> {};
template <>
struct ResultSides<void> : Sides<std::tuple<>> {};
template <class... R>
struct ResultSides<std::tuple<R...>> : Sides<std::tuple<R...>> {};

inline bool all_fit(const std::vector<Side>& sides, const treadle_argument_info* wanted,
                    size_t count) {
  if (sides.size() < count) return false;
  for (size_t i = 0; i < count; ++i) {
    if (!sides[i].fits(wanted[i].tag)) return false;
    if (wanted[i].optional != 0 && !sides[i].reads_none) return false;
  }
  return true;
}

// TypeError, with both sides, unless a function with these parameters and results is a kernel of
// the operator.
inline void check_fits(const treadle_operator_info& info, const std::vector<Side>& parameters,
                       const std::vector<Side>& results) {
  const size_t outputs = info.returns != 0 ? 0 : info.output_count;
  bool fits = all_fit(parameters, info.arguments, info.argument_count) &&
              parameters.size() == info.argument_count + outputs;
  for (size_t i = info.argument_count; fits && i < parameters.size(); ++i)
    fits = parameters[i].fits(TREADLE_TAG_TENSOR);
  const size_t returned = info.returns != 0 ? info.result_count : 0;
  fits = fits && results.size() == returned && all_fit(results, info.results, returned);
  if (fits) return;

  std::string expected, got, expected_results, got_results;
  const auto add = [](std::string& list, const std::string& item) {
    list += (list.empty() ? "" : ", ") + item;
  };
  for (size_t i = 0; i < info.argument_count; ++i)
    add(expected, join(info.arguments[i].type, " ", info.arguments[i].name));
  for (size_t i = 0; i < outputs; ++i) add(expected, "Tensor out");
  for (const Side& side : parameters) add(got, side.name);
  for (size_t i = 0; i < returned; ++i) add(expected_results, info.results[i].type);
  for (const Side& side : results) add(got_results, side.name);
  fail(ErrorKind::Type, "register_kernel: the function does not fit ", info.schema,
       "\n  expected (", expected, ") -> (", expected_results, ")\n  got      (", got, ") -> (",
       got_results, ")");
}

// A value for the host. It takes over the reference of a tensor.
template <class T>
void put(T&& result, treadle_value& value) {
  using D = std::decay_t<T>;
  if constexpr (std::is_same_v<D, Tensor>) {
    Nothing nothing;
    value = Convert<Tensor>::write(result, nothing);
    result.give();
  } else if constexpr (std::is_same_v<D, std::vector<Tensor>>) {
    std::vector<treadle_tensor*> handles;
    for (Tensor& tensor : result) handles.push_back(tensor.give());
    succeed(api().make_tensors(handles.data(), handles.size(), &value));
  } else {
    static_assert(std::is_same_v<D, bool> || std::is_same_v<D, int64_t> ||
                      std::is_same_v<D, double> || std::is_same_v<D, Number>,
                  "a kernel returns Tensor, std::vector<Tensor>, a number or a tuple of them");
    Nothing nothing;
    value = Convert<D>::write(result, nothing);
  }
}

// A function in the form that the host calls. It lives as long as the process.
template <class F>
class KernelOf {
 public:
  using Result = typename Signature<F>::Result;
  using Parameters = typename Signature<F>::Parameters;
  static constexpr size_t kParameters = std::tuple_size_v<Parameters>;

  KernelOf(std::string name, F function) : name_(std::move(name)), function_(std::move(function)) {}

  static treadle_status run(void* context, const treadle_value* arguments, size_t count,
                            treadle_value* results, size_t result_count) {
    return guarded([&] {
      static_cast<KernelOf*>(context)->call(arguments, count, results, result_count,
                                            std::make_index_sequence<kParameters>());
    });
  }
  static std::vector<Side> parameters() { return Sides<Parameters>::list(); }
  static std::vector<Side> results() { return ResultSides<Result>::list(); }

 private:
  template <size_t... i>
  void call([[maybe_unused]] const treadle_value* arguments, size_t count,
            [[maybe_unused]] treadle_value* results, [[maybe_unused]] size_t result_count,
            std::index_sequence<i...>) {
    check(count == kParameters, ErrorKind::Type, name_, ": the kernel takes ", kParameters,
          " arguments, got ", count);
    auto held = std::tuple{read<std::tuple_element_t<i, Parameters>>(arguments[i], i)...};
    if constexpr (std::is_void_v<Result>) {
      function_(get<std::tuple_element_t<i, Parameters>>(std::get<i>(held))...);
    } else {
      check(result_count == Results<Result>::count, ErrorKind::Runtime, name_,
            ": the kernel returns ", Results<Result>::count, " results, expected ", result_count);
      put_all(function_(get<std::tuple_element_t<i, Parameters>>(std::get<i>(held))...), results);
    }
  }
  template <class T>
  auto read(const treadle_value& value, size_t position) const {
    try {
      return Convert<T>::read(value);
    } catch (const Error& error) {
      fail(error.kind(), name_, ": argument ", position + 1, ": ", error.what());
    }
  }
  template <class T, class Held>
  static decltype(auto) get(Held& held) {
    if constexpr (std::is_same_v<T, Tensor>)
      return (held.tensor);
    else
      return (held);
  }
  template <class T>
  static void put_all(T&& result, treadle_value* values) {
    put(std::forward<T>(result), values[0]);
  }
  template <class... T>
  static void put_all(std::tuple<T...>&& results, treadle_value* values) {
    std::apply([&](T&... result) { (put(std::move(result), *values++), ...); }, results);
  }

  std::string name_;
  F function_;
};

inline std::string name_in(const char* schema) {
  const std::string text = schema;
  return text.substr(0, text.find('('));
}
template <class F>
void check_kernel(const char* schema) {
  const treadle_operator_info info = Operator(name_in(schema)).info();
  if (info.arguments != nullptr)
    check_fits(info, KernelOf<F>::parameters(), KernelOf<F>::results());
}

template <class F>
void register_function(const char* schema, treadle_device_type device, F function,
                       Span<const DType> dtypes) {
  std::vector<treadle_dtype> numbers;
  for (const DType dtype : dtypes) numbers.push_back(static_cast<treadle_dtype>(dtype));
  auto kernel = std::make_unique<KernelOf<F>>(name_in(schema), std::move(function));
  succeed(api().register_kernel(schema, device, dtypes.empty() ? nullptr : numbers.data(),
                                numbers.size(), &KernelOf<F>::run, kernel.get()));
  kernel.release();
  check_kernel<F>(schema);
}

}  // namespace detail

// Registers a function as the kernel of an operator for a kind of device. `schema` is the schema
// for which the function was written. `dtypes` are those of the tensor that selects the kernel;
// none means all dtypes that the operator declares. It raises an error if there is no such
// operator, if its schema differs, if the function does not fit it, or if the operator already has
// a kernel there.
template <auto function>
void register_kernel(const char* schema, treadle_device_type device,
                     Span<const DType> dtypes = {}) {
  detail::register_function(schema, device, function, dtypes);
}
// The same for a lambda, which may hold the kernel's state.
template <class F>
void register_kernel(const char* schema, treadle_device_type device, F function,
                     Span<const DType> dtypes = {}) {
  detail::register_function(schema, device, std::move(function), dtypes);
}

// Makes an operator, "my_ns::name(Tensor x, int n) -> Tensor". The kernel serves every device
// without a kernel of its own. `meta` takes the same parameters and returns tensors of the right
// shape, dtype and device (the meta device) without values.
template <class F, class Meta = std::nullptr_t>
void define_operator(const char* schema, F kernel, Meta meta = nullptr) {
  treadle_definition definition{};
  definition.size = sizeof definition;
  definition.schema = schema;
  if constexpr (std::is_same_v<Meta, std::nullptr_t>) {
    auto made = std::make_unique<detail::KernelOf<F>>(detail::name_in(schema), std::move(kernel));
    definition.context = made.get();
    definition.kernel = &detail::KernelOf<F>::run;
    succeed(api().define_operator(&definition));
    made.release();
  } else {
    // One context serves both functions.
    struct Both {
      detail::KernelOf<F> kernel;
      detail::KernelOf<Meta> meta;
    };
    auto made = std::make_unique<Both>(Both{{detail::name_in(schema), std::move(kernel)},
                                            {detail::name_in(schema), std::move(meta)}});
    definition.context = made.get();
    definition.kernel = [](void* context, const treadle_value* arguments, size_t count,
                           treadle_value* results, size_t result_count) {
      return detail::KernelOf<F>::run(&static_cast<Both*>(context)->kernel, arguments, count,
                                      results, result_count);
    };
    definition.meta = [](void* context, const treadle_value* arguments, size_t count,
                         treadle_value* results, size_t result_count) {
      return detail::KernelOf<Meta>::run(&static_cast<Both*>(context)->meta, arguments, count,
                                         results, result_count);
    };
    succeed(api().define_operator(&definition));
    made.release();
    detail::check_kernel<Meta>(schema);
  }
  detail::check_kernel<F>(schema);
}

}  // namespace treadle::plugin

#pragma GCC visibility pop
