// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/quantized/cpu/rescale.h"

#include "aten/ops/quantized/cpu/affine.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

constexpr int64_t kGrain = 32768;

// The sums fit 32 bits once the zero point is taken off.
float without_zero(int32_t sum, uint32_t zero, int32_t column_sum) {
  const uint32_t difference = static_cast<uint32_t>(sum) - zero * static_cast<uint32_t>(column_sum);
  return static_cast<float>(static_cast<int32_t>(difference));
}

// Real numbers of so many columns of a row.
void to_real(const Rescaling& r, const int32_t* __restrict sums, int64_t first, int64_t count,
             float* __restrict real) {
  const auto zero = static_cast<uint32_t>(r.input_zero);
  const int32_t* __restrict column_sums = r.column_sums + first;
  const float* __restrict factors = r.factors + first;
  if (!r.added) {
    for (int64_t c = 0; c < count; ++c)
      real[c] = without_zero(sums[c], zero, column_sums[c]) * factors[c];
    return;
  }
  const float* __restrict added = r.added + first;
  for (int64_t c = 0; c < count; ++c)
    real[c] = without_zero(sums[c], zero, column_sums[c]) * factors[c] + added[c];
}

// put(real numbers, the place of the first, how many) for all of them, a few at a time.
template <class F>
void each_part(const Rescaling& r, int64_t rows, int64_t columns, const int32_t* sums, F&& put) {
  constexpr int64_t kPart = 512;
  parallel_for(rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, columns)),
               [&](int64_t first, int64_t last) {
                 float real[kPart];
                 for (int64_t i = first; i < last; ++i) {
                   for (int64_t c = 0; c < columns; c += kPart) {
                     const int64_t count = std::min(kPart, columns - c);
                     to_real(r, sums + i * columns + c, c, count, real);
                     put(real, i * columns + c, count);
                   }
                 }
               });
}

template <class Q>
void rescale_to(const Rescaling& r, int64_t rows, int64_t columns, const int32_t* sums, Q* out) {
  const Rounded<Q> rounded(r.output_zero, r.relu);
  each_part(r, rows, columns, sums, [&](const float* real, int64_t at, int64_t count) {
    round_all<Q>(
        real, count, rounded, [](float x) { return x; }, out + at);
  });
}

template <class Q>
void combine(bool multiply, const Operand& a, const Operand& b, double scale, int64_t zero,
             bool relu, Q* out, int64_t count) {
  const Q *const x = static_cast<const Q*>(a.values), *const y = static_cast<const Q*>(b.values);
  const auto p = static_cast<float>(multiply ? a.scale * b.scale / scale : a.scale / scale);
  const auto q = static_cast<float>(b.scale / scale);
  const auto u = static_cast<int32_t>(a.zero), v = static_cast<int32_t>(b.zero);
  const Rounded<Q> rounded(zero, relu);
  const auto each = [&](auto&& f) {
    parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
      const Q* const __restrict a0 = x + begin, * const __restrict b0 = y + begin;
      Q* const __restrict to = out + begin;
      const Rounded<Q> round = rounded;
      for (int64_t i = 0; i < end - begin; ++i) to[i] = round(f(a0[i], b0[i]));
    });
  };
  if (multiply)
    each([u, v, p](Q a1, Q b1) { return static_cast<float>((a1 - u) * (b1 - v)) * p; });
  else
    each([u, v, p, q](Q a1, Q b1) {
      return static_cast<float>(a1 - u) * p + static_cast<float>(b1 - v) * q;
    });
}

}  // namespace

void rescale(const Rescaling& r, int64_t rows, int64_t columns, const int32_t* sums,
             const Tensor& out) {
  if (out.dtype() == ScalarType::UInt8) {
    rescale_to<uint8_t>(r, rows, columns, sums, out.data_as<uint8_t>());
  } else if (out.dtype() == ScalarType::Int8) {
    rescale_to<int8_t>(r, rows, columns, sums, out.data_as<int8_t>());
  } else {
    float* const to = out.data_as<float>();
    each_part(r, rows, columns, sums, [&](const float* real, int64_t at, int64_t count) {
      if (r.relu)
        std::transform(real, real + count, to + at, [](float x) { return x > 0.0f ? x : 0.0f; });
      else
        std::copy(real, real + count, to + at);
    });
  }
}

void add_or_multiply(bool multiply, const Operand& a, const Operand& b, double scale, int64_t zero,
                     bool relu, const Tensor& out) {
  if (out.dtype() == ScalarType::UInt8)
    combine<uint8_t>(multiply, a, b, scale, zero, relu, out.data_as<uint8_t>(), out.numel());
  else
    combine<int8_t>(multiply, a, b, scale, zero, relu, out.data_as<int8_t>(), out.numel());
}

}  // namespace treadle::cpu
