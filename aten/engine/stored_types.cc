// Float8 types are read from tables and rounded in integer arithmetic. Complex types of 32 bits are
// pairs. Types that programs register have functions of their own.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/stored_types.h"

#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "aten/engine/backends/device_copy.h"
#include "aten/engine/copy.h"
#include "core/base/outside_dtypes.h"
#include "core/threads/parallel.h"

namespace treadle {
namespace {

constexpr int64_t kGrain = 32 * 1024;

// A sign bit, an exponent and a mantissa.
struct Format {
  int mantissa, bias;
  int largest;         // the magnitude's bits of the largest number
  int too_large;       // what is larger becomes this
  int nan;             // the magnitude's bits
  bool unsigned_zero;  // the bits of -0 are the only NaN
};
constexpr Format kE4m3fn{3, 7, 0x7e, 0x7e, 0x7f, false};  // it has no infinity: it saturates
constexpr Format kE5m2{2, 15, 0x7b, 0x7c, 0x7f, false};
constexpr Format kE4m3fnuz{3, 8, 0x7f, 0x80, 0x80, true};
constexpr Format kE5m2fnuz{2, 16, 0x7f, 0x80, 0x80, true};
constexpr Format kE2m1fn{1, 1, 0x7, 0x7, 0x7, false};  // it has no NaN, either

constexpr float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

template <Format f>
struct SmallFloat {
  static float to_float(uint8_t bits) {
    static const auto values = [] {
      std::array<float, 256> table{};
      for (int i = 0; i < 256; ++i) table[static_cast<size_t>(i)] = value_of(i);
      return table;
    }();
    return values[bits];
  }

  static uint8_t from_float(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint32_t sign = u >> 24 & 0x80u, magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint8_t>(sign | f.nan);
    constexpr int kDropped = 23 - f.mantissa;
    constexpr float kSmallestNormal = power_of_two(1 - f.bias);
    uint32_t rounded;
    if (std::bit_cast<float>(magnitude) < kSmallestNormal) {
      // Adding a number whose last place is that of the type rounds as it should.
      constexpr float kAligned = power_of_two(24 - f.bias - f.mantissa);
      rounded = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + kAligned) -
                std::bit_cast<uint32_t>(kAligned);
    } else {
      constexpr uint32_t kHalf = (1u << (kDropped - 1)) - 1;
      constexpr uint32_t kRebias = static_cast<uint32_t>(127 - f.bias) << f.mantissa;
      rounded = ((magnitude + kHalf + (magnitude >> kDropped & 1)) >> kDropped) - kRebias;
    }
    if (rounded > static_cast<uint32_t>(f.largest)) rounded = f.too_large;
    if (f.unsigned_zero && rounded == 0) return 0;
    return static_cast<uint8_t>(sign | rounded);
  }

 private:
  static float value_of(int bits) {
    const int magnitude = bits & 0x7f, exponent = magnitude >> f.mantissa;
    const int fraction = magnitude & ((1 << f.mantissa) - 1);
    const bool negative = bits > 0x7f;
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    if (f.unsigned_zero && bits == 0x80) return kNan;
    if (magnitude > f.largest) {
      const bool infinite = magnitude == f.too_large && f.too_large != f.nan;
      return std::copysign(infinite ? std::numeric_limits<float>::infinity() : kNan,
                           negative ? -1.0f : 1.0f);
    }
    const float value = exponent == 0
                            ? std::ldexp(static_cast<float>(fraction), 1 - f.bias - f.mantissa)
                            : std::ldexp(static_cast<float>(fraction + (1 << f.mantissa)),
                                         exponent - f.bias - f.mantissa);
    return negative ? -value : value;
  }
};

// Powers of two from 2^-127 on, without a sign; the last pattern is NaN. A value half way between
// two goes to the larger one.
struct Exponent {
  static float to_float(uint8_t bits) {
    if (bits == 0) return 0x1p-127f;
    return bits == 255 ? std::numeric_limits<float>::quiet_NaN() : power_of_two(bits - 127);
  }
  static uint8_t from_float(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint32_t exponent = u >> 23 & 0xffu, fraction = u & 0x7fffffu;
    if (exponent == 255) return 255;
    const uint32_t half = exponent > 0 ? 0x400000u : 0x400001u;
    return static_cast<uint8_t>(exponent + (fraction >= half ? 1 : 0));
  }
};

template <class Small>
struct FloatElement {
  using Bits = uint8_t;
  using Wide = float;
  static float widen(uint8_t bits) { return Small::to_float(bits); }
  static uint8_t narrow(float value) { return Small::from_float(value); }
};

template <class Part>
struct ComplexElement {
  using Bits = std::array<Part, 2>;
  using Wide = std::complex<float>;
  static Wide widen(Bits b) { return {static_cast<float>(b[0]), static_cast<float>(b[1])}; }
  static Bits narrow(Wide v) { return {Part(v.real()), Part(v.imag())}; }
};

// Calls f.template operator()<Element>().
template <class F>
void visit_stored(ScalarType t, F&& f) {
  switch (t) {
    case ScalarType::Float8_e4m3fn:
      return f.template operator()<FloatElement<SmallFloat<kE4m3fn>>>();
    case ScalarType::Float8_e5m2:
      return f.template operator()<FloatElement<SmallFloat<kE5m2>>>();
    case ScalarType::Float8_e4m3fnuz:
      return f.template operator()<FloatElement<SmallFloat<kE4m3fnuz>>>();
    case ScalarType::Float8_e5m2fnuz:
      return f.template operator()<FloatElement<SmallFloat<kE5m2fnuz>>>();
    case ScalarType::Float8_e8m0fnu:
      return f.template operator()<FloatElement<Exponent>>();
    case ScalarType::Complex32:
      return f.template operator()<ComplexElement<Half>>();
    case ScalarType::BComplex32:
      return f.template operator()<ComplexElement<BFloat16>>();
    default:
      fail<ErrorKind::NotImplemented>(
          OpName("copy_"), "expected a dtype whose elements can be converted, got ", name_of(t),
          "; its bytes can be seen with .view(treadle.uint8)");
  }
}

// Converts `count` elements by a function of a registered dtype.
template <class F>
void convert_outside(const OutsideDtype& dtype, const F& convert, const Tensor& from,
                     const Tensor& to) {
  const auto* const source = static_cast<const std::byte*>(from.data());
  auto* const target = static_cast<std::byte*>(to.data());
  const int64_t size = from.element_size(), wide = to.element_size();
  const auto part = [&](int64_t begin, int64_t end) {
    convert(source + begin * size, target + begin * wide, end - begin);
  };
  if (dtype.in_parallel)
    parallel_for(to.numel(), kGrain, part);
  else if (to.numel() > 0)
    part(0, to.numel());
}

// The bits of an element of a registered dtype, as a number and in memory.
struct ElementBits {
  explicit ElementBits(ScalarType stored) : size(static_cast<size_t>(item_size(stored))) {}
  int64_t number() const {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes, size);
    if (size == 2) return static_cast<int16_t>(bits);  // as its carrier
    if (size == 4) return static_cast<int32_t>(bits);
    return static_cast<int64_t>(bits);
  }
  size_t size;
  alignas(8) std::byte bytes[8] = {};
};

}  // namespace

float float4_value(uint8_t bits) {
  return SmallFloat<kE2m1fn>::to_float(static_cast<uint8_t>((bits & 8) << 4 | (bits & 7)));
}

uint8_t float4_bits(float value) {
  if (std::isnan(value)) return kE2m1fn.largest;
  const int bits = SmallFloat<kE2m1fn>::from_float(value);
  return static_cast<uint8_t>(bits >> 4 | (bits & 7));
}

void copy_anywhere(const Tensor& dst, const Tensor& src) {
  if (dst.is_cpu() && src.is_cpu())
    copy_strided(dst, src);
  else
    copy_between_devices(dst, src, false);
}

ScalarType carrier_type(ScalarType stored) {
  switch (item_size(stored)) {
    case 1:
      return ScalarType::UInt8;
    case 2:
      return ScalarType::Int16;
    case 4:
      return is_outside(stored) ? ScalarType::Int32 : ScalarType::UInt32;
    default:
      return ScalarType::Int64;
  }
}

bool is_convertible(ScalarType stored) {
  return stored != ScalarType::Float4_e2m1fn_x2 && !is_quantized(stored);
}

void require_convertible(ScalarType stored) {
  if (is_outside(stored)) return;
  visit_stored(stored, []<class Element>() {});
}

Tensor as_carriers(const Tensor& t) {
  return alias_as(t, carrier_type(t.dtype()), t.sizes(), t.strides(), t.storage_offset());
}

Tensor from_carriers(const Tensor& t, ScalarType stored) {
  return alias_as(t, stored, t.sizes(), t.strides(), t.storage_offset());
}

Tensor computed(const Tensor& t) {
  const Tensor wide = empty_cpu(t.sizes(), computed_type(t.dtype()));
  const Tensor bits = empty_cpu(t.sizes(), carrier_type(t.dtype()));
  if (is_outside(t.dtype())) {
    const OutsideDtype& dtype = outside_dtype(t.dtype());
    copy_anywhere(bits, as_carriers(t));
    convert_outside(dtype, dtype.widen, bits, wide);
    return wide;
  }
  visit_stored(t.dtype(), [&]<class Element>() {
    copy_anywhere(bits, as_carriers(t));
    const auto* from = static_cast<const typename Element::Bits*>(bits.data());
    auto* to = static_cast<typename Element::Wide*>(wide.data());
    parallel_for(wide.numel(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = Element::widen(from[i]);
    });
  });
  return wide;
}

void store(const Tensor& dst, const Tensor& src) {
  if (is_outside(dst.dtype())) {
    const OutsideDtype& dtype = outside_dtype(dst.dtype());
    const Tensor wide = empty_cpu(src.sizes(), dtype.computed);
    copy_anywhere(wide, src);
    const Tensor bits = empty_cpu(src.sizes(), carrier_type(dst.dtype()));
    convert_outside(dtype, dtype.narrow, wide, bits);
    return copy_anywhere(as_carriers(dst), bits);
  }
  visit_stored(dst.dtype(), [&]<class Element>() {
    const Tensor wide = empty_cpu(src.sizes(), computed_type(dst.dtype()));
    copy_anywhere(wide, src);
    const Tensor bits = empty_cpu(src.sizes(), carrier_type(dst.dtype()));
    const auto* from = static_cast<const typename Element::Wide*>(wide.data());
    auto* to = static_cast<typename Element::Bits*>(bits.data());
    parallel_for(wide.numel(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = Element::narrow(from[i]);
    });
    copy_anywhere(as_carriers(dst), bits);
  });
}

Scalar encoded(const Scalar& value, ScalarType stored) {
  if (is_outside(stored)) {
    const OutsideDtype& dtype = outside_dtype(stored);
    ElementBits element(stored);
    const auto wide = value.to<double>();
    const auto narrow = static_cast<float>(wide);
    const bool is_double = dtype.computed == ScalarType::Float64;
    dtype.narrow(is_double ? static_cast<const void*>(&wide) : &narrow, element.bytes, 1);
    return Scalar(element.number());
  }
  Scalar bits;
  visit_stored(stored, [&]<class Element>() {
    const auto element = Element::narrow(value.to<typename Element::Wide>());
    if constexpr (sizeof(element) == 1)
      bits = Scalar(element);
    else
      bits = Scalar(std::bit_cast<uint32_t>(element));
  });
  return bits;
}

Scalar decoded(const Scalar& bits, ScalarType stored) {
  if (is_outside(stored)) {
    const OutsideDtype& dtype = outside_dtype(stored);
    ElementBits element(stored);
    const auto number = bits.to<int64_t>();
    std::memcpy(element.bytes, &number, element.size);
    double wide = 0;
    float narrow = 0;
    const bool is_double = dtype.computed == ScalarType::Float64;
    dtype.widen(element.bytes, is_double ? static_cast<void*>(&wide) : &narrow, 1);
    return Scalar(is_double ? wide : static_cast<double>(narrow));
  }
  Scalar value;
  visit_stored(stored, [&]<class Element>() {
    using Bits = typename Element::Bits;
    if constexpr (sizeof(Bits) == 1)
      value = Scalar(Element::widen(bits.to<uint8_t>()));
    else
      value = Scalar(Element::widen(std::bit_cast<Bits>(bits.to<uint32_t>())));
  });
  return value;
}

}  // namespace treadle
