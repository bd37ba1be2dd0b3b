// Names and promotion of dtypes.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/base/scalar_type.h"

#include <algorithm>
#include <atomic>

#include "core/base/error.h"
#include "core/schema/dtypes.h"

namespace treadle {
namespace {

constexpr std::array<std::string_view, kNumDtypes> kNames = {"bool",
                                                             "uint8",
                                                             "uint16",
                                                             "uint32",
                                                             "uint64",
                                                             "int8",
                                                             "int16",
                                                             "int32",
                                                             "int64",
                                                             "float16",
                                                             "bfloat16",
                                                             "float32",
                                                             "float64",
                                                             "complex64",
                                                             "complex128",
                                                             "float8_e4m3fn",
                                                             "float8_e5m2",
                                                             "float8_e4m3fnuz",
                                                             "float8_e5m2fnuz",
                                                             "float8_e8m0fnu",
                                                             "float4_e2m1fn_x2",
                                                             "complex32",
                                                             "bcomplex32",
                                                             "qint8",
                                                             "quint8",
                                                             "qint32",
                                                             "quint4x2",
                                                             "quint2x4"};

// The generator's table of dtypes has the order of ScalarType, and its names.
constexpr bool is_in_place(ScalarType type, std::string_view enumerator) {
  const auto i = static_cast<size_t>(type);
  return schema::kDtypes[i].enumerator == enumerator && schema::kDtypes[i].name == kNames[i];
}
#define TREADLE_IN_PLACE(enumerator) is_in_place(ScalarType::enumerator, #enumerator)
static_assert(schema::kDtypes.size() == kNumScalarTypes);
static_assert(TREADLE_IN_PLACE(Bool) && TREADLE_IN_PLACE(UInt8) && TREADLE_IN_PLACE(UInt16) &&
              TREADLE_IN_PLACE(UInt32) && TREADLE_IN_PLACE(UInt64) && TREADLE_IN_PLACE(Int8) &&
              TREADLE_IN_PLACE(Int16) && TREADLE_IN_PLACE(Int32) && TREADLE_IN_PLACE(Int64));
static_assert(TREADLE_IN_PLACE(Float16) && TREADLE_IN_PLACE(BFloat16) &&
              TREADLE_IN_PLACE(Float32) && TREADLE_IN_PLACE(Float64) &&
              TREADLE_IN_PLACE(Complex64) && TREADLE_IN_PLACE(Complex128));
#undef TREADLE_IN_PLACE

// Other names that PyTorch and NumPy know the types by.
struct Alias {
  std::string_view name;
  ScalarType type;
};
constexpr Alias kAliases[] = {
    {"half", ScalarType::Float16},     {"float", ScalarType::Float32},
    {"double", ScalarType::Float64},   {"short", ScalarType::Int16},
    {"int", ScalarType::Int32},        {"long", ScalarType::Int64},
    {"cfloat", ScalarType::Complex64}, {"cdouble", ScalarType::Complex128},
    {"chalf", ScalarType::Complex32},
};

// The entry for two dtypes without a common one.
constexpr auto kNoCommon = static_cast<ScalarType>(kNumDtypes);

constexpr ScalarType promote(ScalarType a, ScalarType b) {
  if (a == b) return a;
  if (is_complex(a) || is_complex(b)) return std::max(to_complex(a), to_complex(b));
  if (is_floating(a) && is_floating(b)) {
    const ScalarType low = std::min(a, b), high = std::max(a, b);
    // Neither of the 16-bit types holds the other.
    return low == ScalarType::Float16 && high == ScalarType::BFloat16 ? ScalarType::Float32 : high;
  }
  if (is_floating(a)) return a;
  if (is_floating(b)) return b;
  const ScalarType low = std::min(a, b), high = std::max(a, b);
  if (low == ScalarType::Bool || is_signed(low) || !is_signed(high)) return high;
  if (low == ScalarType::UInt64) return kNoCommon;
  // Between two integers of one width, the signed one has an index greater by four; the next wider
  // one by five.
  return std::max(high, static_cast<ScalarType>(static_cast<int>(low) + 5));
}

constexpr auto kPromotion = [] {
  std::array<std::array<ScalarType, kNumScalarTypes>, kNumScalarTypes> table{};
  for (int a = 0; a < kNumScalarTypes; ++a) {
    for (int b = 0; b < kNumScalarTypes; ++b) {
      table[a][b] = promote(static_cast<ScalarType>(a), static_cast<ScalarType>(b));
    }
  }
  return table;
}();

// Storage-only types promote with no other type, except for the complex ones, which are computed in
// complex64.
ScalarType promote_stored(ScalarType a, ScalarType b) {
  if (a == b) return a;
  if (is_stored(a) && is_stored(b))
    return is_complex(a) && is_complex(b) ? ScalarType::Complex64 : kNoCommon;
  const ScalarType stored = is_stored(a) ? a : b, other = is_stored(a) ? b : a;
  if (!is_complex(stored)) return kNoCommon;
  if (is_integral(other, true) || other == to_real(stored)) return stored;
  return promote_types(ScalarType::Complex64, other);
}

std::atomic<ScalarType> g_default_dtype{ScalarType::Float32};

}  // namespace

ScalarType promote_types(ScalarType a, ScalarType b) {
  const ScalarType common = is_stored(a) || is_stored(b)
                                ? promote_stored(a, b)
                                : kPromotion[static_cast<size_t>(a)][static_cast<size_t>(b)];
  check<ErrorKind::Type>(common != kNoCommon, "expected dtypes with a common one, got ", name_of(a),
                         " and ", name_of(b), "; cast one of them first, with .to()");
  return common;
}

bool can_cast(ScalarType from, ScalarType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_integral(to, true)) return false;
  return from == ScalarType::Bool || to != ScalarType::Bool;
}

std::string_view name_of(ScalarType t) {
  const auto i = static_cast<size_t>(t);
  return i < kNames.size() ? kNames[i] : "unknown dtype";
}

ScalarType scalar_type_from_name(std::string_view name) {
  std::string_view bare = name;
  if (bare.starts_with("treadle.")) bare.remove_prefix(8);
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == bare) return static_cast<ScalarType>(i);
  }
  for (const Alias& alias : kAliases) {
    if (alias.name == bare) return alias.type;
  }
  std::string known;
  for (std::string_view n : kNames) {
    if (!known.empty()) known += ", ";
    known += n;
  }
  fail<ErrorKind::Type>("expected the name of a dtype (", known, "), got '", name, "'");
}

ScalarType default_dtype() { return g_default_dtype.load(std::memory_order_relaxed); }

void set_default_dtype(ScalarType t) {
  check<ErrorKind::Type>(is_floating(t) && !is_stored(t), OpName("set_default_dtype"),
                         "expected a floating dtype, got ", t);
  g_default_dtype.store(t, std::memory_order_relaxed);
}

}  // namespace treadle
