// The fft functions prepare their arguments here. The kernels _fft_c2c, _fft_r2c and _fft_c2r do
// the work.
//
// The second half of a real signal's transform mirrors the first. rfft returns the first half, and
// irfft takes it; ihfft and hfft are the same two in the opposite direction.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_fft_c2c.h"
#include "aten/ops/_fft_c2r.h"
#include "aten/ops/_fft_r2c.h"
#include "aten/ops/arange.h"
#include "aten/ops/cat.h"
#include "aten/ops/clone.h"
#include "aten/ops/creation/factory_options.h"
#include "aten/ops/fft/arguments.h"
#include "aten/ops/fft_fft.h"
#include "aten/ops/fft_fft2.h"
#include "aten/ops/fft_fftfreq.h"
#include "aten/ops/fft_fftn.h"
#include "aten/ops/fft_fftshift.h"
#include "aten/ops/fft_hfft.h"
#include "aten/ops/fft_hfft2.h"
#include "aten/ops/fft_hfftn.h"
#include "aten/ops/fft_ifft.h"
#include "aten/ops/fft_ifft2.h"
#include "aten/ops/fft_ifftn.h"
#include "aten/ops/fft_ifftshift.h"
#include "aten/ops/fft_ihfft.h"
#include "aten/ops/fft_ihfft2.h"
#include "aten/ops/fft_ihfftn.h"
#include "aten/ops/fft_irfft.h"
#include "aten/ops/fft_irfft2.h"
#include "aten/ops/fft_irfftn.h"
#include "aten/ops/fft_rfft.h"
#include "aten/ops/fft_rfft2.h"
#include "aten/ops/fft_rfftfreq.h"
#include "aten/ops/fft_rfftn.h"
#include "aten/ops/mul.h"
#include "aten/ops/roll.h"
#include "aten/ops/to.h"

namespace treadle::composite {
namespace {

using Norm = std::optional<std::string_view>;
using OptInt = std::optional<int64_t>;

// Complex to complex.
Tensor full(const char* op, const Tensor& self, const FftDims& dims, Norm norm, bool forward) {
  const auto division = static_cast<int64_t>(fft_norm(op, norm, forward));
  const Tensor input = fft_resized(op, fft_input(op, self, true), dims);
  return aten::_fft_c2c(input, dims.dims, division, forward);
}

// Real to the first half of the transform.
Tensor to_half(const char* op, const Tensor& self, const FftDims& dims, Norm norm, bool forward) {
  check<ErrorKind::Runtime>(!dims.dims.empty(), OpName(op),
                            "expected at least 1 dimension to transform, got none");
  const auto division = static_cast<int64_t>(fft_norm(op, norm, forward));
  const Tensor input = fft_resized(op, fft_real_input(op, self), dims);
  return aten::_fft_r2c(input, dims.dims, division, forward);
}

// The first half of the transform to the real signal.
Tensor from_half(const char* op, const Tensor& self, FftDims dims, Norm norm, bool forward) {
  check<ErrorKind::Runtime>(!dims.dims.empty(), OpName(op),
                            "expected at least 1 dimension to transform, got none");
  const auto division = static_cast<int64_t>(fft_norm(op, norm, forward));
  const int64_t size = dims.sizes.back();
  dims.sizes.back() = size / 2 + 1;
  const Tensor input = fft_resized(op, fft_input(op, self, true), dims);
  return aten::_fft_c2r(input, dims.dims, division, size, forward);
}

Tensor shifted(const char* op, const Tensor& self, OptionalIntList dim, bool back) {
  const DimVector dims = wrap_dims(op, dim, self.dim(), false);
  // Nothing to move. Without dims, roll would move all elements as one row.
  if (dims.empty() || self.dim() == 0) return aten::clone(self);
  DimVector shifts;
  for (const int64_t d : dims) shifts.push_back((self.size(d) + (back ? 1 : 0)) / 2);
  return aten::roll(self, shifts, dims);
}

// 0, 1, ... `positive` of them, then `negative` up to -1, in steps of 1 / (n * d).
Tensor frequencies(const FactoryOptions& options, int64_t n, double d, int64_t positive,
                   int64_t negative) {
  check<ErrorKind::Value>(d != 0, OpName(options.op), "expected d != 0, got d = ", d);
  // In double precision, so that large counts stay exact.
  const auto range = [&](int64_t from, int64_t to) {
    return aten::arange(from, to, ScalarType::Float64, std::nullopt, options.device);
  };
  Tensor counts = range(0, positive);
  if (negative > 0) counts = aten::cat(std::vector<Tensor>{counts, range(-negative, 0)}, 0);
  const Tensor result = aten::mul(counts, 1.0 / (static_cast<double>(n) * d));
  return result.dtype() == options.dtype ? result : aten::to(result, options.dtype);
}

}  // namespace

Tensor fft_fft(const Tensor& self, OptInt n, int64_t dim, Norm norm) {
  return full("fft", self, fft_dim("fft", self, n, dim, false), norm, true);
}
Tensor fft_ifft(const Tensor& self, OptInt n, int64_t dim, Norm norm) {
  return full("ifft", self, fft_dim("ifft", self, n, dim, false), norm, false);
}
Tensor fft_rfft(const Tensor& self, OptInt n, int64_t dim, Norm norm) {
  return to_half("rfft", self, fft_dim("rfft", self, n, dim, false), norm, true);
}
Tensor fft_irfft(const Tensor& self, OptInt n, int64_t dim, Norm norm) {
  return from_half("irfft", self, fft_dim("irfft", self, n, dim, true), norm, false);
}
Tensor fft_hfft(const Tensor& self, OptInt n, int64_t dim, Norm norm) {
  return from_half("hfft", self, fft_dim("hfft", self, n, dim, true), norm, true);
}
Tensor fft_ihfft(const Tensor& self, OptInt n, int64_t dim, Norm norm) {
  return to_half("ihfft", self, fft_dim("ihfft", self, n, dim, false), norm, false);
}

Tensor fft_fftn(const Tensor& self, OptionalIntList s, OptionalIntList dim, Norm norm) {
  return full("fftn", self, fft_dims("fftn", self, s, dim, false), norm, true);
}
Tensor fft_ifftn(const Tensor& self, OptionalIntList s, OptionalIntList dim, Norm norm) {
  return full("ifftn", self, fft_dims("ifftn", self, s, dim, false), norm, false);
}
Tensor fft_rfftn(const Tensor& self, OptionalIntList s, OptionalIntList dim, Norm norm) {
  return to_half("rfftn", self, fft_dims("rfftn", self, s, dim, false), norm, true);
}
Tensor fft_irfftn(const Tensor& self, OptionalIntList s, OptionalIntList dim, Norm norm) {
  return from_half("irfftn", self, fft_dims("irfftn", self, s, dim, true), norm, false);
}
Tensor fft_hfftn(const Tensor& self, OptionalIntList s, OptionalIntList dim, Norm norm) {
  return from_half("hfftn", self, fft_dims("hfftn", self, s, dim, true), norm, true);
}
Tensor fft_ihfftn(const Tensor& self, OptionalIntList s, OptionalIntList dim, Norm norm) {
  return to_half("ihfftn", self, fft_dims("ihfftn", self, s, dim, false), norm, false);
}

Tensor fft_fft2(const Tensor& self, OptionalIntList s, IntList dim, Norm norm) {
  return full("fft2", self, fft_dims("fft2", self, s, OptionalIntList(dim), false), norm, true);
}
Tensor fft_ifft2(const Tensor& self, OptionalIntList s, IntList dim, Norm norm) {
  return full("ifft2", self, fft_dims("ifft2", self, s, OptionalIntList(dim), false), norm, false);
}
Tensor fft_rfft2(const Tensor& self, OptionalIntList s, IntList dim, Norm norm) {
  return to_half("rfft2", self, fft_dims("rfft2", self, s, OptionalIntList(dim), false), norm,
                 true);
}
Tensor fft_irfft2(const Tensor& self, OptionalIntList s, IntList dim, Norm norm) {
  return from_half("irfft2", self, fft_dims("irfft2", self, s, OptionalIntList(dim), true), norm,
                   false);
}
Tensor fft_hfft2(const Tensor& self, OptionalIntList s, IntList dim, Norm norm) {
  return from_half("hfft2", self, fft_dims("hfft2", self, s, OptionalIntList(dim), true), norm,
                   true);
}
Tensor fft_ihfft2(const Tensor& self, OptionalIntList s, IntList dim, Norm norm) {
  return to_half("ihfft2", self, fft_dims("ihfft2", self, s, OptionalIntList(dim), false), norm,
                 false);
}

Tensor fft_fftfreq(int64_t n, double d, std::optional<ScalarType> dtype,
                   std::optional<Layout> layout, std::optional<Device> device,
                   std::optional<bool> pin_memory) {
  const FactoryOptions options("fftfreq", dtype, layout, device, pin_memory, default_dtype());
  return frequencies(options, n, d, n - n / 2, n / 2);
}
Tensor fft_rfftfreq(int64_t n, double d, std::optional<ScalarType> dtype,
                    std::optional<Layout> layout, std::optional<Device> device,
                    std::optional<bool> pin_memory) {
  const FactoryOptions options("rfftfreq", dtype, layout, device, pin_memory, default_dtype());
  return frequencies(options, n, d, n / 2 + 1, 0);
}

Tensor fft_fftshift(const Tensor& self, OptionalIntList dim) {
  return shifted("fftshift", self, dim, false);
}
Tensor fft_ifftshift(const Tensor& self, OptionalIntList dim) {
  return shifted("ifftshift", self, dim, true);
}

}  // namespace treadle::composite
