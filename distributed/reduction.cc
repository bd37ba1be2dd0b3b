// SPDX-License-Identifier: Apache-2.0
#include "distributed/reduction.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

namespace treadle::distributed {
namespace {

constexpr size_t kBlock = 1024;  // elements: all values of a block stay in the first cache

template <class T>
constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<std::complex<T>> = true;

// The type of sums. Integers wrap around, so signed ones are added as unsigned.
template <class T>
struct Sum {
  using type = T;
};
template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) struct Sum<T> {
  using type = std::make_unsigned_t<T>;
};
template <class T>
requires is_half<T>
struct Sum<T> {
  using type = float;
};
// A bool is a byte, as memory may hold other values than 0 and 1.
template <>
struct Sum<bool> {
  using type = uint8_t;
};

template <class T, class W>
inline W load(const T& element) {
  if constexpr (std::is_same_v<T, bool>)
    return element_value(element);
  else
    return static_cast<W>(element);
}

template <class T>
inline T lesser(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a < b || a != a ? a : b;
  else
    return a < b ? a : b;
}

// Small integers would be multiplied as int, which may overflow.
template <class T>
inline T times(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(1u * a * b);
  else
    return a * b;
}

template <class T>
inline T greater(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a > b || a != a ? a : b;
  else
    return a > b ? a : b;
}

// W is the type of the values, which is not T for halves.
template <class T, class W, class Step>
void blocks(const std::vector<const void*>& inputs, T* out, size_t count, Step step, W scale,
            int divisor) {
  W values[kBlock];
  const bool scales = scale != W(1);
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t n = std::min(kBlock, count - begin);
    const T* first = static_cast<const T*>(inputs[0]) + begin;
    for (size_t i = 0; i < n; ++i) values[i] = load<T, W>(first[i]);
    if (scales)
      for (size_t i = 0; i < n; ++i) values[i] = times(values[i], scale);
    for (size_t k = 1; k < inputs.size(); ++k) {
      const T* next = static_cast<const T*>(inputs[k]) + begin;
      if (scales)
        for (size_t i = 0; i < n; ++i)
          values[i] = step(values[i], times(load<T, W>(next[i]), scale));
      else
        for (size_t i = 0; i < n; ++i) values[i] = step(values[i], load<T, W>(next[i]));
    }
    if (divisor > 1)
      for (size_t i = 0; i < n; ++i) values[i] = static_cast<W>(values[i] / W(divisor));
    for (size_t i = 0; i < n; ++i) out[begin + i] = static_cast<T>(values[i]);
  }
}

// Two float32 inputs, or the like: no block is needed where values are not wider than elements.
template <class T, class Step>
void pair(const std::vector<const void*>& inputs, T* out, size_t count, Step step) {
  const T *a = static_cast<const T*>(inputs[0]), *b = static_cast<const T*>(inputs[1]);
  for (size_t i = 0; i < count; ++i) out[i] = step(a[i], b[i]);
}

template <class T>
void reduce_as(ReduceOp op, double factor, int ranks, const std::vector<const void*>& inputs,
               void* out, size_t bytes) {
  using S = typename Sum<T>::type;
  // Comparisons need the sign.
  using C = std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, T, S>;
  T* to = static_cast<T*>(out);
  const size_t count = bytes / sizeof(T);
  const auto add = [](S a, S b) { return static_cast<S>(a + b); };
  switch (op) {
    case ReduceOp::Sum:
      if constexpr (std::is_same_v<T, bool>)
        return blocks<T, S>(
            inputs, to, count, [](S a, S b) { return S(a | b); }, S(1), 1);
      else if constexpr (std::is_floating_point_v<T>)
        if (inputs.size() == 2) return pair<T>(inputs, to, count, add);
      return blocks<T, S>(inputs, to, count, add, S(1), 1);
    case ReduceOp::Average:
      if constexpr (!std::is_integral_v<T>)
        return blocks<T, S>(inputs, to, count, add, S(1), ranks);
      break;
    case ReduceOp::PremulSum:
      if constexpr (!std::is_same_v<T, bool>) {
        const S scale = std::is_integral_v<T> ? static_cast<S>(static_cast<int64_t>(factor))
                                              : static_cast<S>(factor);
        return blocks<T, S>(inputs, to, count, add, scale, 1);
      }
      break;
    case ReduceOp::Product:
      return blocks<T, S>(
          inputs, to, count, [](S a, S b) { return times(a, b); }, S(1), 1);
    case ReduceOp::Min:
      if constexpr (!is_complex<T>)
        return blocks<T, C>(
            inputs, to, count, [](C a, C b) { return lesser(a, b); }, C(1), 1);
      break;
    case ReduceOp::Max:
      if constexpr (!is_complex<T>)
        return blocks<T, C>(
            inputs, to, count, [](C a, C b) { return greater(a, b); }, C(1), 1);
      break;
    case ReduceOp::BitAnd:
      if constexpr (std::is_integral_v<T>)
        return blocks<T, S>(
            inputs, to, count, [](S a, S b) { return static_cast<S>(a & b); }, S(1), 1);
      break;
    case ReduceOp::BitOr:
      if constexpr (std::is_integral_v<T>)
        return blocks<T, S>(
            inputs, to, count, [](S a, S b) { return static_cast<S>(a | b); }, S(1), 1);
      break;
    case ReduceOp::BitXor:
      if constexpr (std::is_integral_v<T>)
        return blocks<T, S>(
            inputs, to, count, [](S a, S b) { return static_cast<S>(a ^ b); }, S(1), 1);
      break;
  }
  throw Failure(Failure::Kind::Backend, "expected an operation that the dtype has");
}

}  // namespace

bool can_reduce(ReduceOp op, ScalarType dtype) {
  if (static_cast<int>(dtype) >= kNumScalarTypes) return false;
  const bool is_fraction = dtype >= ScalarType::Float16;
  const bool has_order = dtype < ScalarType::Complex64;
  switch (op) {
    case ReduceOp::Average:
      return is_fraction;
    case ReduceOp::PremulSum:
      return dtype != ScalarType::Bool;
    case ReduceOp::Min:
    case ReduceOp::Max:
      return has_order;
    case ReduceOp::BitAnd:
    case ReduceOp::BitOr:
    case ReduceOp::BitXor:
      return !is_fraction;
    default:
      return true;
  }
}

size_t element_size(ScalarType dtype) {
  const auto of = []<class... Ts>(TypeList<Ts...>, size_t number) {
    constexpr size_t sizes[] = {sizeof(Ts)...};
    return number < sizeof...(Ts) ? sizes[number] : 1;
  };
  return of(AllTypes{}, static_cast<size_t>(dtype));
}

void reduce(ReduceOp op, ScalarType dtype, double factor, int ranks,
            const std::vector<const void*>& inputs, void* out, size_t bytes) {
  const auto as = [&]<class... Ts>(TypeList<Ts...>) {
    int number = 0;
    const bool done = (... || (number++ == static_cast<int>(dtype) &&
                               (reduce_as<Ts>(op, factor, ranks, inputs, out, bytes), true)));
    if (!done) throw Failure(Failure::Kind::Backend, "expected a dtype with arithmetic");
  };
  as(AllTypes{});
}

}  // namespace treadle::distributed
