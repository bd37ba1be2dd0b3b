// Real numbers to whole ones and back.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/quantized/cpu/affine.h"

#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/_dequantize_affine.h"
#include "aten/ops/_quantize_affine.h"
#include "aten/ops/contiguous.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

constexpr int64_t kGrain = 32768;

// f(begin, end, channel) for runs of elements of one channel.
template <class F>
void each_run(const Tensor& t, int64_t axis, F&& f) {
  int64_t inner = 1;
  for (int64_t d = axis + 1; d < t.dim() && axis >= 0; ++d) inner *= t.size(d);
  if (axis < 0) {
    parallel_for(t.numel(), kGrain, [&](int64_t begin, int64_t end) { f(begin, end, int64_t{0}); });
    return;
  }
  if (inner == 0 || t.size(axis) == 0) return;
  const int64_t runs = t.numel() / inner, channels = t.size(axis);
  parallel_for(runs, std::max<int64_t>(1, kGrain / inner), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) f(r * inner, (r + 1) * inner, r % channels);
  });
}

template <class Q, class T>
void quantize(const Tensor& x, const double* scales, const int64_t* zeros, int64_t axis,
              const Tensor& out) {
  const T* const from = x.data_as<T>();
  Q* const to = out.data_as<Q>();
  each_run(x, axis, [&](int64_t begin, int64_t end, int64_t channel) {
    const float inverse = 1.0f / static_cast<float>(scales[channel]);
    using Range = std::numeric_limits<Q>;
    const Rounded<Q> rounded(std::clamp<int64_t>(zeros[channel], Range::min(), Range::max()));
    round_all<Q>(
        from + begin, end - begin, rounded,
        [inverse](T t) { return static_cast<float>(t) * inverse; }, to + begin);
  });
}

template <class T>
void quantize_affine_cpu(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                         int64_t axis, ScalarType dtype, const Tensor& out) {
  const Tensor x = aten::contiguous(self), s = aten::contiguous(scale);
  const Tensor z = aten::contiguous(zero_point);
  const double* const scales = s.data_as<double>();
  const int64_t* const zeros = z.data_as<int64_t>();
  if (dtype == ScalarType::UInt8) return quantize<uint8_t, T>(x, scales, zeros, axis, out);
  if (dtype == ScalarType::Int8) return quantize<int8_t, T>(x, scales, zeros, axis, out);
  quantize<int32_t, T>(x, scales, zeros, axis, out);
}

template <class T>
void dequantize_affine_cpu(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                           int64_t axis, const Tensor& out) {
  const Tensor x = aten::contiguous(self), s = aten::contiguous(scale);
  const Tensor z = aten::contiguous(zero_point);
  const T* const from = x.data_as<T>();
  float* const to = out.data_as<float>();
  each_run(x, axis, [&](int64_t begin, int64_t end, int64_t channel) {
    const auto by = static_cast<float>(s.data_as<double>()[channel]);
    const int64_t zero = z.data_as<int64_t>()[channel];
    if constexpr (sizeof(T) == 1) {
      const auto shift = static_cast<int32_t>(std::clamp<int64_t>(zero, -65536, 65536));
      for (int64_t i = begin; i < end; ++i)
        to[i] = static_cast<float>(static_cast<int32_t>(from[i]) - shift) * by;
    } else {
      for (int64_t i = begin; i < end; ++i)
        to[i] = static_cast<float>(static_cast<int64_t>(from[i]) - zero) * by;
    }
  });
}

const auto quantize_registered = register_kernels<aten::ops::_quantize_affine, DeviceType::CPU>(
    []<class T>() { return &quantize_affine_cpu<T>; }, "quantize_affine_cpu");
const auto dequantize_registered = register_kernels<aten::ops::_dequantize_affine, DeviceType::CPU>(
    []<class T>() { return &dequantize_affine_cpu<T>; }, "dequantize_affine_cpu");

}  // namespace
}  // namespace treadle::cpu
