// The loops of normalisations over a run of elements: sums, and the results that these give.
//
//   const NormLoops<T>& loops = simd::norm_loops<T>();
//   const C mean = static_cast<C>(loops.sum(x, n) / n);
//
// They compute in C. A sum of a run is a double, whose order of additions depends only on the
// number of elements. "Each" is for factors that change with the element; those of type C* are an
// element's, of type C all elements'.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "core/base/scalar_type.h"

namespace treadle::cpu {

template <class T>
struct NormLoops {
  using C = compute_type<T>;

  // ---- a run that is normalised by itself ----
  double (*sum)(const T* x, int64_t n);
  // Of (x - about)^2.
  double (*squares)(const T* x, int64_t n, C about);
  // Of h and of h * (x - about), with h = g, or h = g * w.
  std::array<double, 2> (*dots)(const T* g, const T* x, int64_t n, C about);
  std::array<double, 2> (*dots_each)(const T* g, const T* w, const T* x, int64_t n, C about);
  // y = (x - about) * scale + shift, or y = (x - about) * scale * w + b; without `b`, nothing is
  // added.
  void (*result)(const T* x, T* y, int64_t n, C about, C scale, C shift);
  void (*result_each)(const T* x, const T* w, const T* b, T* y, int64_t n, C about, C scale);
  // gx = scale * (h - mean - (x - about) * slope), with h = g * weight, or h = g * w.
  void (*gradient)(const T* g, const T* x, T* gx, int64_t n, C weight, C about, C scale, C mean,
                   C slope);
  void (*gradient_each)(const T* g, const T* w, const T* x, T* gx, int64_t n, C about, C scale,
                        C mean, C slope);

  // ---- rows of a matrix, whose columns are summed ----
  // Of `rows` rows of n elements, `pitch` elements apart.
  void (*add)(const T* x, int64_t pitch, int64_t rows, int64_t n, C* sums);
  // sums += d and squares += d^2, with d = x - about.
  void (*add_moments)(const T* x, int64_t pitch, int64_t rows, int64_t n, const C* about, C* sums,
                      C* squares);
  // sums += g and dots += g * (x - about). Of one row, dots += g * (x - about) * scale.
  void (*add_dots)(const T* g, const T* x, int64_t pitch, int64_t rows, int64_t n, const C* about,
                   C* sums, C* dots);
  void (*add_scaled_dots)(const T* g, const T* x, int64_t n, C about, C scale, C* sums, C* dots);
  // As above, of a row whose elements have factors of their own.
  void (*result_columns)(const T* x, T* y, int64_t n, const C* about, const C* scale,
                         const C* shift);
  void (*gradient_columns)(const T* g, const T* x, T* gx, int64_t n, const C* about, const C* scale,
                           const C* mean, const C* slope);
};

}  // namespace treadle::cpu

namespace treadle::simd {

// Those of the best target that this machine has, for float, double and the 16-bit floats.
template <class T>
const cpu::NormLoops<T>& norm_loops();
template <>
const cpu::NormLoops<float>& norm_loops<float>();
template <>
const cpu::NormLoops<double>& norm_loops<double>();
template <>
const cpu::NormLoops<Half>& norm_loops<Half>();
template <>
const cpu::NormLoops<BFloat16>& norm_loops<BFloat16>();

}  // namespace treadle::simd
