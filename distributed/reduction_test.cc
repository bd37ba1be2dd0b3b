// Reductions of every operation and dtype, against arithmetic of one element at a time.
//
// SPDX-License-Identifier: Apache-2.0

#include "distributed/reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace treadle::distributed {
namespace {

constexpr ReduceOp kOps[] = {ReduceOp::Sum,   ReduceOp::Average, ReduceOp::Product,
                             ReduceOp::Min,   ReduceOp::Max,     ReduceOp::BitAnd,
                             ReduceOp::BitOr, ReduceOp::BitXor,  ReduceOp::PremulSum};
constexpr double kFactor = 3;

template <class T>
constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<std::complex<T>> = true;

// A bool is a byte here: memory may hold others than 0 and 1.
template <class T>
using Element = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

template <class T>
bool same(T a, T b) {
  if constexpr (is_complex<T>)
    return same(a.real(), b.real()) && same(a.imag(), b.imag());
  else if constexpr (is_half<T>)
    return same(static_cast<float>(a), static_cast<float>(b));
  else if constexpr (std::is_floating_point_v<T>)
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
  else
    return a == b;
}

template <class T>
T drawn(std::mt19937& random) {
  if constexpr (is_complex<T>) {
    using V = typename T::value_type;
    return T(static_cast<V>(random() % 64) / 4 - 8, static_cast<V>(random() % 64) / 4 - 8);
  } else if constexpr (is_half<T> || std::is_floating_point_v<T>) {
    using L = std::numeric_limits<std::conditional_t<is_half<T>, float, T>>;
    const double special[] = {L::quiet_NaN(),  L::infinity(), -L::infinity(), 0.0,  -0.0, L::min(),
                              L::denorm_min(), L::max(),      L::lowest(),    6e-8, 7e4};
    const size_t which = random() % 40;
    const double value = which < std::size(special)
                             ? special[which]
                             : std::ldexp(static_cast<double>(random() % 4096) - 2048,
                                          static_cast<int>(random() % 20) - 15);
    return static_cast<T>(static_cast<std::conditional_t<is_half<T>, float, T>>(value));
  } else {
    const T special[] = {0, 1, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    const size_t which = random() % 12;
    return which < 4 ? special[which]
                     : static_cast<T>(static_cast<uint64_t>(random()) << 32 | random());
  }
}

// One element; integers modulo 2^64, of which the low bits are the result.
template <class T>
Element<T> expected(ReduceOp op, const std::vector<Element<T>>& values) {
  const auto fold = [&](auto first, auto step) {
    auto found = first;
    for (size_t k = 1; k < values.size(); ++k) found = step(found, values[k]);
    return found;
  };
  if constexpr (std::is_same_v<T, bool>) {
    bool all = true, any = false, odd = false;
    for (const uint8_t each : values) {
      all = all && each != 0;
      any = any || each != 0;
      odd = odd != (each != 0);
    }
    if (op == ReduceOp::BitXor) return odd;
    return op == ReduceOp::Product || op == ReduceOp::Min || op == ReduceOp::BitAnd ? all : any;
  } else if constexpr (std::is_integral_v<T>) {
    const auto wide = [](T value) { return static_cast<uint64_t>(value); };
    const uint64_t factor = op == ReduceOp::PremulSum ? static_cast<uint64_t>(kFactor) : 1;
    switch (op) {
      case ReduceOp::Product:
        return static_cast<T>(fold(wide(values[0]), [&](uint64_t a, T b) { return a * wide(b); }));
      case ReduceOp::Min:
        return fold(values[0], [](T a, T b) { return std::min(a, b); });
      case ReduceOp::Max:
        return fold(values[0], [](T a, T b) { return std::max(a, b); });
      case ReduceOp::BitAnd:
        return fold(values[0], [](T a, T b) { return static_cast<T>(a & b); });
      case ReduceOp::BitOr:
        return fold(values[0], [](T a, T b) { return static_cast<T>(a | b); });
      case ReduceOp::BitXor:
        return fold(values[0], [](T a, T b) { return static_cast<T>(a ^ b); });
      default:
        return static_cast<T>(
            fold(wide(values[0]) * factor, [&](uint64_t a, T b) { return a + wide(b) * factor; }));
    }
  } else {
    using W = std::conditional_t<is_half<T>, float, T>;
    const W first = static_cast<W>(values[0]);
    const auto n = static_cast<W>(static_cast<float>(values.size()));
    switch (op) {
      case ReduceOp::Average:
        return static_cast<T>(fold(first, [](W a, T b) { return a + static_cast<W>(b); }) / n);
      case ReduceOp::Product:
        return static_cast<T>(fold(first, [](W a, T b) { return a * static_cast<W>(b); }));
      case ReduceOp::PremulSum: {
        const W factor = static_cast<W>(static_cast<float>(kFactor));
        return static_cast<T>(
            fold(first * factor, [&](W a, T b) { return a + static_cast<W>(b) * factor; }));
      }
      case ReduceOp::Min:
      case ReduceOp::Max:
        if constexpr (!is_complex<T>)
          return static_cast<T>(fold(first, [&](W a, T b) {
            const W other = static_cast<W>(b);
            if (std::isnan(a)) return a;
            if (std::isnan(other)) return other;
            return (op == ReduceOp::Min ? a < other : a > other) ? a : other;
          }));
        [[fallthrough]];
      default:
        return static_cast<T>(fold(first, [](W a, T b) { return a + static_cast<W>(b); }));
    }
  }
}

template <class T>
void check(ReduceOp op, ScalarType dtype, size_t ranks, size_t count, size_t in_place) {
  using E = Element<T>;
  std::mt19937 random(static_cast<unsigned>(ranks * 100 + count));
  std::vector<std::vector<E>> inputs(ranks);
  std::vector<const void*> places;
  for (auto& input : inputs) {
    for (size_t i = 0; i < count; ++i) input.push_back(drawn<E>(random));
    places.push_back(input.data());
  }
  const std::vector<std::vector<E>> before = inputs;
  std::vector<E> apart(count);
  std::vector<E>& out = in_place < ranks ? inputs[in_place] : apart;
  reduce(op, dtype, op == ReduceOp::PremulSum ? kFactor : 1, static_cast<int>(ranks), places,
         out.data(), count * sizeof(E));
  for (size_t i = 0; i < count; ++i) {
    std::vector<E> values;
    for (const auto& input : before) values.push_back(input[i]);
    ASSERT_TRUE(same(out[i], expected<T>(op, values)))
        << "element " << i << " of " << count << ", " << ranks << " ranks, operation "
        << static_cast<int>(op) << ", dtype " << static_cast<int>(dtype);
  }
}

template <class... Ts>
void every_dtype(TypeList<Ts...>, ReduceOp op) {
  int number = 0;
  const auto one = [&]<class T>(std::type_identity<T>) {
    const auto dtype = static_cast<ScalarType>(number++);
    EXPECT_EQ(element_size(dtype), sizeof(T));
    if (!can_reduce(op, dtype)) {
      char bytes[16] = {};
      EXPECT_THROW(reduce(op, dtype, 1, 2, {bytes, bytes}, bytes, sizeof(T)), Failure);
      return;
    }
    for (const size_t ranks : {1, 2, 3, 7})
      for (const size_t count : {0, 5, 1025})
        for (const size_t in_place : {ranks - 1, ranks})
          check<T>(op, dtype, ranks, count, in_place);
  };
  (one(std::type_identity<Ts>{}), ...);
}

TEST(Reduction, EveryOperationOfEveryDtype) {
  for (const ReduceOp op : kOps) every_dtype(AllTypes{}, op);
}

TEST(Reduction, DtypesWithoutArithmetic) {
  for (int dtype = kNumScalarTypes; dtype < 256; ++dtype)
    for (const ReduceOp op : kOps) EXPECT_FALSE(can_reduce(op, static_cast<ScalarType>(dtype)));
  char byte = 0;
  EXPECT_THROW(reduce(ReduceOp::Sum, ScalarType::Float8_e5m2, 1, 1, {&byte}, &byte, 1), Failure);
}

template <class T>
T two(ReduceOp op, T a, T b) {
  T out{};
  reduce(op, scalar_type_of<T>, 1, 2, {&a, &b}, &out, sizeof(T));
  return out;
}

TEST(Reduction, IntegersWrapAround) {
  EXPECT_EQ(two<int8_t>(ReduceOp::Sum, 127, 1), -128);
  EXPECT_EQ(two<uint16_t>(ReduceOp::Product, 65535, 65535), 1);
  EXPECT_EQ(two<int32_t>(ReduceOp::Sum, INT32_MAX, INT32_MAX), -2);
  EXPECT_EQ(two<int64_t>(ReduceOp::Sum, INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(two<int64_t>(ReduceOp::Product, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(two<int8_t>(ReduceOp::Max, -1, 1), 1);
  EXPECT_EQ(two<uint8_t>(ReduceOp::Max, 255, 1), 255);
}

TEST(Reduction, NaNWins) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOp op : {ReduceOp::Min, ReduceOp::Max, ReduceOp::Sum, ReduceOp::Product}) {
    EXPECT_TRUE(std::isnan(two<float>(op, nan, 1)));
    EXPECT_TRUE(std::isnan(two<float>(op, 1, nan)));
    EXPECT_TRUE(std::isnan(two<double>(op, nan, INFINITY)));
    EXPECT_TRUE(std::isnan(static_cast<float>(two<Half>(op, Half(1), Half(nan)))));
    EXPECT_TRUE(std::isnan(static_cast<float>(two<BFloat16>(op, BFloat16(nan), BFloat16(1)))));
  }
}

// The sum is rounded once: 2048 + 1 + 1 is 2050 in float16, step by step it would stay 2048.
TEST(Reduction, HalvesAreRoundedOnce) {
  const Half large(2048), one(1);
  Half out;
  reduce(ReduceOp::Sum, ScalarType::Float16, 1, 3, {&large, &one, &one}, &out, sizeof(out));
  EXPECT_EQ(static_cast<float>(out), 2050);
}

// All values of float16 come through a reduction of one rank; -1 as factor changes the sign alone.
TEST(Reduction, EveryHalf) {
  std::vector<Half> all, out(65536);
  for (uint32_t bits = 0; bits < 65536; ++bits)
    all.push_back(Half::from_bits(static_cast<uint16_t>(bits)));
  reduce(ReduceOp::PremulSum, ScalarType::Float16, -1, 1, {all.data()}, out.data(), 131072);
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = all[bits];
    ASSERT_EQ(std::isnan(value), std::isnan(static_cast<float>(out[bits]))) << bits;
    if (std::isnan(value)) continue;
    ASSERT_EQ(out[bits].bits, bits ^ 0x8000u) << bits;
  }
}

}  // namespace
}  // namespace treadle::distributed
