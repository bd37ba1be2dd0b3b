// Calls of Treadle's operators.
//
//   Tensor y = call("aten::mm", a, b);
//   auto [values, indices] = call<std::tuple<Tensor, Tensor>>("aten::sort", x, -1, false);
//   static const Operator add("aten::add.Tensor");   // looked up once
//   Tensor z = add(x, y, 2);
#pragma once

#include "treadle/plugin/value.hpp"

#pragma GCC visibility push(hidden)

namespace treadle::plugin {

namespace detail {

// Reads the results of a call, whose references belong to the caller.
template <class R>
struct Results {
  static constexpr size_t count = 1;
  static R read(treadle_value* values) {
    if constexpr (std::is_same_v<R, Tensor>)
      return Tensor::borrow(Convert<Tensor>::read(values[0]).tensor.handle());
    else
      return Convert<R>::read(values[0]);
  }
};
template <>
struct Results<void> {
  static constexpr size_t count = 0;
  static void read(treadle_value*) {}
};
template <class... R>
struct Results<std::tuple<R...>> {
  static constexpr size_t count = sizeof...(R);
  static std::tuple<R...> read(treadle_value* values) {
    return read(values, std::index_sequence_for<R...>());
  }
  template <size_t... i>
  static std::tuple<R...> read(treadle_value* values, std::index_sequence<i...>) {
    return {Results<R>::read(values + i)...};
  }
};

template <class T>
struct Argument {
  using C = Convert<T>;
  typename C::Keep keep{};
  treadle_value value;
  explicit Argument(const T& from) : value(C::write(from, keep)) {}
  Argument(const Argument&) = delete;
};

struct ReleasedValues {
  static constexpr size_t kCapacity = 16;
  treadle_value values[kCapacity] = {};
  size_t count = 0;
  ~ReleasedValues() { api().release_values(values, count); }
};

}  // namespace detail

// One operator. RuntimeError if no operator has the name.
class Operator {
 public:
  explicit Operator(std::string name) : name_(std::move(name)) {
    succeed(api().find(name_.c_str(), &handle_));
  }

  // Calls it with arguments in the schema's order. Arguments omitted at the end take their
  // defaults. R: Tensor, std::vector<Tensor>, int64_t, double, bool, Number, void, or a tuple of
  // them. Gradients are recorded as in any call.
  template <class R = Tensor, class... A>
  R call(const A&... arguments) const {
    return call_boxed<R>(std::tuple<detail::Argument<A>...>(arguments...),
                         std::index_sequence_for<A...>());
  }
  template <class... A>
  Tensor operator()(const A&... arguments) const {
    return call<Tensor>(arguments...);
  }

  // Its names, schema, arguments and results.
  treadle_operator_info info() const {
    treadle_operator_info info{};
    info.size = sizeof info;
    succeed(api().operator_info(handle_, &info));
    return info;
  }
  const treadle_operator* handle() const { return handle_; }

 private:
  template <class R, class Arguments, size_t... i>
  R call_boxed(const Arguments& arguments, std::index_sequence<i...>) const {
    const treadle_value values[sizeof...(i) + 1] = {std::get<i>(arguments).value...};
    detail::ReleasedValues results;
    succeed(api().call(handle_, values, sizeof...(i), results.values, results.kCapacity,
                       &results.count));
    check(std::is_void_v<R> || results.count == detail::Results<R>::count, ErrorKind::Runtime,
          "call: expected ", detail::Results<R>::count, " results of ", name_, ", got ",
          results.count);
    return detail::Results<R>::read(results.values);
  }

  std::string name_;
  const treadle_operator* handle_ = nullptr;
};

// Looks the operator up by "aten::mm" or "mm" and calls it.
template <class R = Tensor, class... A>
R call(std::string name, const A&... arguments) {
  return Operator(std::move(name)).call<R>(arguments...);
}

// The tensor itself if it is contiguous, else a contiguous copy.
inline Tensor contiguous(const Tensor& tensor) {
  return tensor.is_contiguous()
             ? tensor
             : call("aten::clone", tensor, std::optional(MemoryFormat::Contiguous));
}

}  // namespace treadle::plugin

#pragma GCC visibility pop
