// SPDX-License-Identifier: Apache-2.0
#include "distributed/reduction.h"

#include <algorithm>
#include <bit>
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

constexpr uint32_t chosen(bool condition, uint32_t a, uint32_t b) {
  return b ^ ((a ^ b) & (0u - static_cast<uint32_t>(condition)));
}

// The conversions of Half have branches, and meet subnormal floats, which processors compute
// slowly. These have the same results, in vector code.
inline float float_of(Half half) {
  const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000u) << 16;
  const uint32_t magnitude = half.bits & 0x7fffu;
  const uint32_t normal =
      (magnitude << 13) + chosen(magnitude >= 0x7c00u, 0x70000000u, 0x38000000u);
  const float subnormal = static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f;
  const uint32_t found = chosen(magnitude < 0x400u, std::bit_cast<uint32_t>(subnormal), normal);
  return std::bit_cast<float>(found | sign);
}

inline Half half_of(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  // 0.5 has the last place of a subnormal half.
  const uint32_t small =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1) - 0x38000000u) >> 13;
  uint32_t found = chosen(magnitude < 0x38800000u, small, normal);
  found = chosen(magnitude >= 0x477ff000u, 0x7c00u, found);
  found = chosen(magnitude > 0x7f800000u, 0x7e00u, found);
  return Half::from_bits(static_cast<uint16_t>(found | ((bits >> 16) & 0x8000u)));
}

template <class T, class W>
inline W load(const T& element) {
  if constexpr (std::is_same_v<T, bool>)
    return element_value(element);
  else if constexpr (std::is_same_v<T, Half>)
    return float_of(element);
  else
    return static_cast<W>(element);
}

template <class T, class W>
inline T stored(W value) {
  if constexpr (std::is_same_v<T, Half>)
    return half_of(value);
  else
    return static_cast<T>(value);
}

// A NaN wins. There is no branch, for vector code.
template <class T>
inline T lesser(T a, T b) {
  const T found = a < b ? a : b;
  return a != a ? a : found;
}

template <class T>
inline T greater(T a, T b) {
  const T found = a > b ? a : b;
  return a != a ? a : found;
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
inline T divided(T value, int by) {
  if constexpr (is_complex<T>)
    return value / static_cast<typename T::value_type>(by);
  else
    return static_cast<T>(value / static_cast<T>(by));
}

// `read` makes a value of type W of an element, `step` one of two, `write` the element of the last.
// The first pass reads two inputs, and the last one writes the result: two inputs take one pass.
template <class T, class W, class Read, class Step, class Write>
void steps(const std::vector<const void*>& inputs, T* out, size_t count, Read read, Step step,
           Write write) {
  W values[kBlock];
  const size_t last = inputs.size() - 1;
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t n = std::min(kBlock, count - begin);
    const auto input = [&](size_t k) { return static_cast<const T*>(inputs[k]) + begin; };
    T* to = out + begin;
    const T* first = input(0);
    const T* next = input(last);
    if (last == 0) {
      for (size_t i = 0; i < n; ++i) to[i] = write(read(first[i]));
    } else if (last == 1) {
      for (size_t i = 0; i < n; ++i) to[i] = write(step(read(first[i]), read(next[i])));
    } else {
      const T* second = input(1);
      for (size_t i = 0; i < n; ++i) values[i] = step(read(first[i]), read(second[i]));
      for (size_t k = 2; k < last; ++k) {
        const T* middle = input(k);
        for (size_t i = 0; i < n; ++i) values[i] = step(values[i], read(middle[i]));
      }
      for (size_t i = 0; i < n; ++i) to[i] = write(step(values[i], read(next[i])));
    }
  }
}

template <class T>
void reduce_as(ReduceOp op, double factor, int ranks, const std::vector<const void*>& inputs,
               void* out, size_t bytes) {
  using S = typename Sum<T>::type;
  // Comparisons need the sign.
  using C = std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, T, S>;
  T* to = static_cast<T*>(out);
  const size_t count = bytes / sizeof(T);
  const auto read = [](const T& element) { return load<T, S>(element); };
  const auto write = [](S value) { return stored<T>(value); };
  const auto add = [](S a, S b) { return static_cast<S>(a + b); };
  const auto run = [&](auto step) { steps<T, S>(inputs, to, count, read, step, write); };
  const auto compare = [&](auto step) {
    steps<T, C>(
        inputs, to, count, [](const T& element) { return load<T, C>(element); }, step,
        [](C value) { return stored<T>(value); });
  };
  switch (op) {
    case ReduceOp::Sum:
      if constexpr (std::is_same_v<T, bool>)
        return run([](S a, S b) { return static_cast<S>(a | b); });
      else
        return run(add);
    case ReduceOp::Average:
      if constexpr (!std::is_integral_v<T>)
        return steps<T, S>(inputs, to, count, read, add,
                           [ranks](S value) { return stored<T>(divided(value, ranks)); });
      break;
    case ReduceOp::PremulSum:
      if constexpr (!std::is_same_v<T, bool>) {
        const S scale = std::is_integral_v<T> ? static_cast<S>(static_cast<int64_t>(factor))
                                              : static_cast<S>(factor);
        return steps<T, S>(
            inputs, to, count,
            [scale](const T& element) { return times(load<T, S>(element), scale); }, add, write);
      }
      break;
    case ReduceOp::Product:
      return run([](S a, S b) { return times(a, b); });
    case ReduceOp::Min:
      if constexpr (std::is_same_v<T, bool>)
        return run([](S a, S b) { return static_cast<S>(a & b); });
      else if constexpr (!is_complex<T>)
        return compare([](C a, C b) { return lesser(a, b); });
      break;
    case ReduceOp::Max:
      if constexpr (std::is_same_v<T, bool>)
        return run([](S a, S b) { return static_cast<S>(a | b); });
      else if constexpr (!is_complex<T>)
        return compare([](C a, C b) { return greater(a, b); });
      break;
    case ReduceOp::BitAnd:
      if constexpr (std::is_integral_v<T>)
        return run([](S a, S b) { return static_cast<S>(a & b); });
      break;
    case ReduceOp::BitOr:
      if constexpr (std::is_integral_v<T>)
        return run([](S a, S b) { return static_cast<S>(a | b); });
      break;
    case ReduceOp::BitXor:
      if constexpr (std::is_integral_v<T>)
        return run([](S a, S b) { return static_cast<S>(a ^ b); });
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
