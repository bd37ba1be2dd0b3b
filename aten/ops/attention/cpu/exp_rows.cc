// exp of a row, and its sum. The sum uses a fixed number of lanes, whatever the width of a vector,
// so results do not depend on the machine's vectors.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/attention/cpu/exp_rows.cc"
#include "aten/backend/cpu/foreach_target.h"

#include "aten/engine/cpu/fold-inl.h"
#include "aten/ops/attention/cpu/exp_rows.h"
#include "aten/scalar/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

template <class T>
T exp_shifted(T* x, int64_t n, T shift) {
  const Vec<T> by = set(shift);
  return folded_sum<T>(n, [&](int64_t i, int64_t lanes) {
    const Vec<T> e = exp(load_lanes(x + i, lanes) - by);
    store_lanes(e, x + i, lanes);
    return e;
  });
}

float exp_shifted_float(float* x, int64_t n, float shift) { return exp_shifted(x, n, shift); }
double exp_shifted_double(double* x, int64_t n, double shift) { return exp_shifted(x, n, shift); }

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(exp_shifted_float);
HWY_EXPORT(exp_shifted_double);

}  // namespace treadle::simd

namespace treadle::cpu {

float exp_shifted(float* x, int64_t n, float shift) {
  using namespace simd;
  return HWY_DYNAMIC_DISPATCH(exp_shifted_float)(x, n, shift);
}
double exp_shifted(double* x, int64_t n, double shift) {
  using namespace simd;
  return HWY_DYNAMIC_DISPATCH(exp_shifted_double)(x, n, shift);
}

}  // namespace treadle::cpu
#endif  // HWY_ONCE
