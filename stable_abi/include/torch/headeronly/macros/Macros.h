// Small macros of header-only code, under the names that PyTorch's extensions know.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#define C10_CONCATENATE_IMPL(a, b) a##b
#define C10_CONCATENATE(a, b) C10_CONCATENATE_IMPL(a, b)
#define C10_STRINGIZE_IMPL(x) #x
#define C10_STRINGIZE(x) C10_STRINGIZE_IMPL(x)
#define C10_MACRO_EXPAND(args) args
#define C10_UID __COUNTER__
#define C10_ANONYMOUS_VARIABLE(name) C10_CONCATENATE(name, __COUNTER__)

#define C10_LIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 1))
#define C10_UNLIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 0))
#define C10_NOINLINE __attribute__((noinline))
#define C10_ALWAYS_INLINE __attribute__((__always_inline__)) inline
#define C10_RESTRICT __restrict
#define C10_UNUSED [[maybe_unused]]
#define C10_NODISCARD [[nodiscard]]
#define C10_EXPORT __attribute__((__visibility__("default")))
#define C10_HIDDEN __attribute__((__visibility__("hidden")))
#define C10_IMPORT C10_EXPORT
#define C10_API C10_IMPORT

#if defined(__CUDACC__) || defined(__HIPCC__)
#define C10_HOST_DEVICE __host__ __device__
#define C10_HOST __host__
#define C10_DEVICE __device__
#else
#define C10_HOST_DEVICE
#define C10_HOST
#define C10_DEVICE
#endif

#if defined(__clang__)
#define C10_LIFETIMEBOUND [[clang::lifetimebound]]
#else
#define C10_LIFETIMEBOUND
#endif

// HIDDEN_NAMESPACE_BEGIN(torch, stable, detail) opens a namespace whose names no other library
// sees, so that extensions compiled with different headers do not mix. END takes the same names.
#define TREADLE_HIDDEN __attribute__((__visibility__("hidden")))
#define TREADLE_OPEN_1(a) namespace a TREADLE_HIDDEN {
#define TREADLE_OPEN_2(a, ...) \
  namespace a {                \
  TREADLE_OPEN_1(__VA_ARGS__)
#define TREADLE_OPEN_3(a, ...) \
  namespace a {                \
  TREADLE_OPEN_2(__VA_ARGS__)
#define TREADLE_OPEN_4(a, ...) \
  namespace a {                \
  TREADLE_OPEN_3(__VA_ARGS__)
#define TREADLE_CLOSE_1(a) }
#define TREADLE_CLOSE_2(a, ...) \
  }                             \
  TREADLE_CLOSE_1(__VA_ARGS__)
#define TREADLE_CLOSE_3(a, ...) \
  }                             \
  TREADLE_CLOSE_2(__VA_ARGS__)
#define TREADLE_CLOSE_4(a, ...) \
  }                             \
  TREADLE_CLOSE_3(__VA_ARGS__)
#define TREADLE_COUNT(_1, _2, _3, _4, count, ...) count
#define TREADLE_COUNT_OF(...) TREADLE_COUNT(__VA_ARGS__, 4, 3, 2, 1, 0)
#define HIDDEN_NAMESPACE_BEGIN(...) \
  C10_CONCATENATE(TREADLE_OPEN_, TREADLE_COUNT_OF(__VA_ARGS__))(__VA_ARGS__)
#define HIDDEN_NAMESPACE_END(...) \
  C10_CONCATENATE(TREADLE_CLOSE_, TREADLE_COUNT_OF(__VA_ARGS__))(__VA_ARGS__)
