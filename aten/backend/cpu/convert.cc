// The table of conversion loops. Contiguous ones of numbers are in convert_vectors.cc.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/convert.h"

#include <algorithm>
#include <cstring>

#include "aten/backend/cpu/convert_vectors.h"
#include "core/base/error.h"

namespace treadle::simd {
namespace {

// Elements; shorter runs are not worth a call.
constexpr int64_t kShortestRun = 8, kShortestRepeat = 32;

// The runs that vectors are quicker at; returns how many elements they did.
template <class T>
int64_t copied_in_vectors(const char* src, int64_t src_stride, char* dst, int64_t dst_stride,
                          int64_t n) {
  if (n < kShortestRun) return 0;
  if constexpr (sizeof(T) == 8) {
    if (src_stride == -8 && dst_stride == 8) return convert_vectors().backwards_8(src, dst, n);
  }
  if constexpr (sizeof(T) == 4) {
    if (src_stride == -4 && dst_stride == 4) return convert_vectors().backwards_4(src, dst, n);
    if (src_stride == 8 && dst_stride == 4) return convert_vectors().from_every_second(src, dst, n);
    if (src_stride == 4 && dst_stride == 8) return convert_vectors().to_every_second(src, dst, n);
  }
  return 0;
}

template <class T>
T element_at(const char* place) {
  return element_value(*reinterpret_cast<const T*>(place));
}

// Constant strides save an addition each, if they are known to be contiguous.
template <class From, class To, class FromStride, class ToStride>
[[gnu::always_inline]] inline void strided_loop(const char* src, FromStride src_stride, char* dst,
                                                ToStride dst_stride, int64_t n) {
#pragma GCC unroll 8
  for (int64_t i = 0; i < n; ++i, src += src_stride, dst += dst_stride) {
    *reinterpret_cast<To*>(dst) = convert_element<To>(element_at<From>(src));
  }
}

template <class From, class To>
void convert_loop(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t n) {
  constexpr int64_t kFrom = sizeof(From), kTo = sizeof(To);
  if (src_stride == kFrom && dst_stride == kTo) {
    if constexpr (std::is_same_v<From, To>) {
      // A run without elements may have no memory, which memmove does not take.
      if (n > 0) std::memmove(dst, src, static_cast<size_t>(n) * sizeof(To));
      return;
    }
    int64_t i = 0;
    if (n >= kShortestRun) {
      const auto run = convert_vectors().of_types[static_cast<size_t>(scalar_type_of<From>)]
                                                 [static_cast<size_t>(scalar_type_of<To>)];
      if (run != nullptr) i = run(src, dst, n);
    }
    const From* const s = reinterpret_cast<const From*>(src);
    To* const d = reinterpret_cast<To*>(dst);
#pragma GCC ivdep
    for (; i < n; ++i) d[i] = convert_element<To>(element_value(s[i]));
  } else if (src_stride == 0) {
    const To value = convert_element<To>(element_at<From>(src));
    if (dst_stride == kTo) {
      if (kTo == 4 && n >= kShortestRepeat)
        convert_vectors().repeat_4(reinterpret_cast<const char*>(&value), 0, 1, dst, n);
      else if (kTo == 8 && n >= kShortestRepeat)
        convert_vectors().repeat_8(reinterpret_cast<const char*>(&value), 0, 1, dst, n);
      else
        std::fill_n(reinterpret_cast<To*>(dst), n, value);
      return;
    }
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; ++i, dst += dst_stride) *reinterpret_cast<To*>(dst) = value;
  } else if constexpr (std::is_same_v<From, To>) {
    const int64_t done = copied_in_vectors<To>(src, src_stride, dst, dst_stride, n);
    src += done * src_stride;
    dst += done * dst_stride;
    n -= done;
    if (dst_stride == kTo)
      strided_loop<From, To>(src, src_stride, dst, std::integral_constant<int64_t, kTo>(), n);
    else if (src_stride == kFrom)
      strided_loop<From, To>(src, std::integral_constant<int64_t, kFrom>(), dst, dst_stride, n);
    else
      strided_loop<From, To>(src, src_stride, dst, dst_stride, n);
  } else {
    strided_loop<From, To>(src, src_stride, dst, dst_stride, n);
  }
}

// Bools are copied as bytes, because uninitialised memory may hold neither of their values.
template <class From, class To>
constexpr ConvertFn* conversion() {
  if constexpr (std::is_same_v<From, bool> && std::is_same_v<To, bool>)
    return &convert_loop<uint8_t, uint8_t>;
  else
    return &convert_loop<From, To>;
}

template <class From, class... Tos>
constexpr std::array<ConvertFn*, kNumScalarTypes> row(TypeList<Tos...>) {
  return {conversion<From, Tos>()...};
}
template <class... Froms>
constexpr std::array<std::array<ConvertFn*, kNumScalarTypes>, kNumScalarTypes> table(
    TypeList<Froms...>) {
  return {row<Froms>(AllTypes())...};
}
constexpr auto kTable = table(AllTypes());

}  // namespace

ConvertFn* converter(ScalarType from, ScalarType to) {
  check_internal(!is_stored(from) && !is_stored(to), "a kernel was given a type that only stores");
  return kTable[static_cast<size_t>(from)][static_cast<size_t>(to)];
}

}  // namespace treadle::simd
