// Windows: functions with one peak that fade a piece of a signal in and out.
//
// A periodic window is the symmetric window of one more point, without its last point. All are
// computed in double precision.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "aten/ops/abs.h"
#include "aten/ops/add.h"
#include "aten/ops/arange.h"
#include "aten/ops/bartlett_window.h"
#include "aten/ops/blackman_window.h"
#include "aten/ops/clamp_min.h"
#include "aten/ops/cos.h"
#include "aten/ops/creation/factory_options.h"
#include "aten/ops/div.h"
#include "aten/ops/fill_.h"
#include "aten/ops/full.h"
#include "aten/ops/hamming_window.h"
#include "aten/ops/hann_window.h"
#include "aten/ops/i0.h"
#include "aten/ops/kaiser_window.h"
#include "aten/ops/mul.h"
#include "aten/ops/neg.h"
#include "aten/ops/sqrt.h"
#include "aten/ops/to.h"

namespace treadle::composite {
namespace {

constexpr double kPi = 3.14159265358979323846;

// f(points from 0 to 1), in the requested dtype and on the requested device.
template <class F>
Tensor window(const char* op, int64_t length, bool periodic, OptDtype dtype, OptLayout layout,
              OptDevice device, OptBool pin_memory, F&& f) {
  const FactoryOptions options(op, dtype, layout, device, pin_memory, default_dtype());
  if (length <= 1) return fresh(aten::fill_(options.empty({length}), 1));
  const Tensor counts = named(
      op, [&] { return aten::arange(length, ScalarType::Float64, std::nullopt, options.device); });
  const Tensor values = f(aten::div(counts, static_cast<double>(length) - (periodic ? 0.0 : 1.0)));
  return values.dtype() == options.dtype ? values : aten::to(values, options.dtype);
}

// cos(2 pi k x).
Tensor cosine(const Tensor& x, double k) { return aten::cos(aten::mul(x, 2 * kPi * k)); }

}  // namespace

Tensor bartlett_window(int64_t window_length, bool periodic, OptDtype dtype, OptLayout layout,
                       OptDevice device, OptBool pin_memory) {
  return window("bartlett_window", window_length, periodic, dtype, layout, device, pin_memory,
                [](const Tensor& x) {
                  return aten::add(aten::neg(aten::abs(aten::add(aten::mul(x, 2), -1))), 1);
                });
}

Tensor blackman_window(int64_t window_length, bool periodic, OptDtype dtype, OptLayout layout,
                       OptDevice device, OptBool pin_memory) {
  return window("blackman_window", window_length, periodic, dtype, layout, device, pin_memory,
                [](const Tensor& x) {
                  const Tensor sum = aten::add(aten::mul(cosine(x, 1), -0.5), 0.42);
                  // Rounding must not make the ends negative.
                  return aten::clamp_min(aten::add(sum, aten::mul(cosine(x, 2), 0.08)), 0);
                });
}

Tensor hamming_window(int64_t window_length, bool periodic, double alpha, double beta,
                      OptDtype dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  return window("hamming_window", window_length, periodic, dtype, layout, device, pin_memory,
                [=](const Tensor& x) { return aten::add(aten::mul(cosine(x, 1), -beta), alpha); });
}

Tensor hann_window(int64_t window_length, bool periodic, OptDtype dtype, OptLayout layout,
                   OptDevice device, OptBool pin_memory) {
  return window("hann_window", window_length, periodic, dtype, layout, device, pin_memory,
                [](const Tensor& x) { return aten::add(aten::mul(cosine(x, 1), -0.5), 0.5); });
}

Tensor kaiser_window(int64_t window_length, bool periodic, double beta, OptDtype dtype,
                     OptLayout layout, OptDevice device, OptBool pin_memory) {
  return window("kaiser_window", window_length, periodic, dtype, layout, device, pin_memory,
                [=](const Tensor& x) {
                  const Tensor side = aten::add(aten::mul(x, 2), -1);
                  const Tensor rest =
                      aten::clamp_min(aten::add(aten::neg(aten::mul(side, side)), 1), 0);
                  const Tensor whole = aten::mul(aten::sqrt(rest), beta);
                  const Tensor top =
                      aten::i0(aten::full({}, beta, ScalarType::Float64, std::nullopt, x.device()));
                  return aten::div(aten::i0(whole), top);
                });
}

Tensor bartlett_window(int64_t window_length, OptDtype dtype, OptLayout layout, OptDevice device,
                       OptBool pin_memory) {
  return bartlett_window(window_length, true, dtype, layout, device, pin_memory);
}
Tensor blackman_window(int64_t window_length, OptDtype dtype, OptLayout layout, OptDevice device,
                       OptBool pin_memory) {
  return blackman_window(window_length, true, dtype, layout, device, pin_memory);
}
Tensor hamming_window(int64_t window_length, OptDtype dtype, OptLayout layout, OptDevice device,
                      OptBool pin_memory) {
  return hamming_window(window_length, true, 0.54, 0.46, dtype, layout, device, pin_memory);
}
Tensor hamming_window(int64_t window_length, bool periodic, OptDtype dtype, OptLayout layout,
                      OptDevice device, OptBool pin_memory) {
  return hamming_window(window_length, periodic, 0.54, 0.46, dtype, layout, device, pin_memory);
}
Tensor hamming_window(int64_t window_length, bool periodic, double alpha, OptDtype dtype,
                      OptLayout layout, OptDevice device, OptBool pin_memory) {
  return hamming_window(window_length, periodic, alpha, 0.46, dtype, layout, device, pin_memory);
}
Tensor hann_window(int64_t window_length, OptDtype dtype, OptLayout layout, OptDevice device,
                   OptBool pin_memory) {
  return hann_window(window_length, true, dtype, layout, device, pin_memory);
}
Tensor kaiser_window(int64_t window_length, OptDtype dtype, OptLayout layout, OptDevice device,
                     OptBool pin_memory) {
  return kaiser_window(window_length, true, 12, dtype, layout, device, pin_memory);
}
Tensor kaiser_window(int64_t window_length, bool periodic, OptDtype dtype, OptLayout layout,
                     OptDevice device, OptBool pin_memory) {
  return kaiser_window(window_length, periodic, 12, dtype, layout, device, pin_memory);
}

}  // namespace treadle::composite
