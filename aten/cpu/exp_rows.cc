// exp of a row and its sum. The sum goes over lanes of a fixed number, whatever the width of a
// vector is, so that results do not depend on the machine's vectors.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "aten/cpu/exp_rows.cc"
#include "aten/cpu/simd/targets.h"
#include "hwy/foreach_target.h"

#include "aten/cpu/exp_rows.h"
#include "aten/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

template <class T>
T exp_shifted(T* x, int64_t n, T shift) {
  using V = Vec<T>;
  constexpr int64_t kFold = 64 / sizeof(T);
  constexpr int64_t kVectors = kFold / V::kLanes;
  const V by = set(shift);
  V sums[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) sums[v] = set(T(0));
  int64_t i = 0;
  for (; i + kFold <= n; i += kFold) {
    for (int64_t v = 0; v < kVectors; ++v) {
      const V e = exp(load(x + i + v * V::kLanes) - by);
      store(e, x + i + v * V::kLanes);
      sums[v] = sums[v] + e;
    }
  }
  HWY_ALIGN T lanes[kFold];
  for (int64_t v = 0; v < kVectors; ++v) store(sums[v], lanes + v * V::kLanes);
  for (int64_t at = 0; i < n; i += V::kLanes, at += V::kLanes) {
    const int64_t count = n - i < V::kLanes ? n - i : V::kLanes;
    const bool whole = count == V::kLanes;
    const V e = exp((whole ? load(x + i) : load_first(x + i, count)) - by);
    if (whole)
      store(e, x + i);
    else
      store_first(e, x + i, count);
    for (int64_t l = 0; l < count; ++l) lanes[at + l] += x[i + l];
  }
  for (int64_t half = kFold / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::cpu {

float exp_shifted(float* x, int64_t n, float shift) {
  constexpr decltype(&simd::N_SSE4::exp_shifted<float>) targets[simd::kTargets] = {
      &simd::N_SSE4::exp_shifted<float>, &simd::N_AVX2::exp_shifted<float>,
      &simd::N_AVX3::exp_shifted<float>};
  return targets[simd::chosen_target](x, n, shift);
}

double exp_shifted(double* x, int64_t n, double shift) {
  constexpr decltype(&simd::N_SSE4::exp_shifted<double>) targets[simd::kTargets] = {
      &simd::N_SSE4::exp_shifted<double>, &simd::N_AVX2::exp_shifted<double>,
      &simd::N_AVX3::exp_shifted<double>};
  return targets[simd::chosen_target](x, n, shift);
}

}  // namespace treadle::cpu
#endif  // HWY_ONCE
