// Names and promotion of dtypes, and the table of those that programs register.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/base/scalar_type.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/base/fork_safe_mutex.h"
#include "core/base/outside_dtypes.h"
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

// complex32 holds float16 values, as complex64 does float32 ones.
ScalarType promote_stored(ScalarType a, ScalarType b) {
  if (a == b) return a;
  if (is_quantized(a) || is_quantized(b)) return kNoCommon;
  const auto keeps = [](ScalarType stored, ScalarType other) {
    return is_stored(stored) && (is_integral(other, true) || other == to_real(stored));
  };
  if (keeps(a, b)) return a;
  if (keeps(b, a)) return b;
  return promote_types(computed_type(a), computed_type(b));
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

ScalarType computed_type(ScalarType stored) {
  if (!is_stored(stored)) return stored;
  if (is_outside(stored)) return outside_dtype(stored).computed;
  return is_complex(stored) ? ScalarType::Complex64 : ScalarType::Float32;
}

std::string_view name_of(ScalarType t) {
  if (is_outside(t)) return outside_dtype(t).name;
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
  if (const std::optional<ScalarType> outside = outside_dtype_named(bare)) return *outside;
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

// ---- registered dtypes ----

namespace {

// Read without the lock. Never destroyed: errors met while the program ends still name dtypes.
std::array<std::atomic<const OutsideDtype*>, kMaxDtypes> outside_dtypes;

ForkSafeMutex& registration_mutex() {
  static auto* const made = new ForkSafeMutex;
  return *made;
}

bool is_identifier(std::string_view name) {
  const auto fits = [](char c, bool first) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
  };
  for (size_t i = 0; i < name.size(); ++i)
    if (!fits(name[i], i == 0)) return false;
  return !name.empty();
}

// Also the names of the library's own types, and their other ones.
bool is_known(std::string_view name) {
  try {
    scalar_type_from_name(name);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

ScalarType register_dtype(std::string_view name, int64_t item_size, OutsideDtype dtype) {
  const OpName op("register_dtype");
  check<ErrorKind::Value>(is_identifier(name), op,
                          "expected a name of letters, digits and _, got '", name, "'");
  check<ErrorKind::Value>(item_size == 1 || item_size == 2 || item_size == 4 || item_size == 8, op,
                          "expected an itemsize of 1, 2, 4 or 8 bytes, got ", item_size);
  check<ErrorKind::Value>(
      dtype.computed == ScalarType::Float32 || dtype.computed == ScalarType::Float64, op,
      "expected to compute in float32 or float64, got ", name_of(dtype.computed));
  check<ErrorKind::Value>(dtype.widen && dtype.narrow, op,
                          "expected functions of both conversions, got one or none");
  const std::lock_guard lock(registration_mutex());
  check<ErrorKind::Value>(!is_known(name), op, "expected a name that no dtype has, got '", name,
                          "'");
  const int first = kFirstOutsideDtype +
                    std::countr_zero(static_cast<uint64_t>(item_size)) * kOutsideDtypesOfASize;
  for (int i = first; i < first + kOutsideDtypesOfASize; ++i) {
    std::atomic<const OutsideDtype*>& place = outside_dtypes[static_cast<size_t>(i)];
    if (place.load(std::memory_order_relaxed)) continue;
    dtype.name = name;
    place.store(new OutsideDtype(std::move(dtype)), std::memory_order_release);
    return static_cast<ScalarType>(i);
  }
  fail<ErrorKind::Runtime>(op, "expected at most ", kOutsideDtypesOfASize, " dtypes of ", item_size,
                           " bytes, got one more, '", name, "'");
}

const OutsideDtype& outside_dtype(ScalarType t) {
  const auto i = static_cast<size_t>(t);
  const OutsideDtype* const found =
      i < outside_dtypes.size() ? outside_dtypes[i].load(std::memory_order_acquire) : nullptr;
  if (found) return *found;
  static const OutsideDtype unknown{"unknown dtype", ScalarType::Float32, {}, {}};
  return unknown;
}

std::optional<ScalarType> outside_dtype_named(std::string_view name) {
  for (int i = kFirstOutsideDtype; i < kMaxDtypes; ++i) {
    const OutsideDtype* const there =
        outside_dtypes[static_cast<size_t>(i)].load(std::memory_order_acquire);
    if (there && there->name == name) return static_cast<ScalarType>(i);
  }
  return std::nullopt;
}

}  // namespace treadle
