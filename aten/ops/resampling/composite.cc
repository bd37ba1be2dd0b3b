// Interpolation by name. Each function is one step of `_resample` for each spatial dimension, the
// last first. Types smaller than float32 are widened once for all steps.
//
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "aten/engine/renamed_errors.h"
#include "aten/ops/_resample.h"
#include "aten/ops/_upsample_bicubic2d_aa.h"
#include "aten/ops/_upsample_bilinear2d_aa.h"
#include "aten/ops/_upsample_nearest_exact1d.h"
#include "aten/ops/_upsample_nearest_exact2d.h"
#include "aten/ops/_upsample_nearest_exact3d.h"
#include "aten/ops/add.h"
#include "aten/ops/clamp.h"
#include "aten/ops/clone.h"
#include "aten/ops/floor.h"
#include "aten/ops/round.h"
#include "aten/ops/to.h"
#include "aten/ops/upsample_bicubic2d.h"
#include "aten/ops/upsample_bilinear2d.h"
#include "aten/ops/upsample_linear1d.h"
#include "aten/ops/upsample_nearest1d.h"
#include "aten/ops/upsample_nearest2d.h"
#include "aten/ops/upsample_nearest3d.h"
#include "aten/ops/upsample_trilinear3d.h"
#include "core/base/error.h"

namespace treadle::composite {
namespace {

using Scale = std::optional<double>;

Tensor upsample(const char* op, const Tensor& self, IntList output_size, std::string_view mode,
                bool align_corners, std::initializer_list<Scale> scales) {
  const size_t spatial = output_size.size();
  check<ErrorKind::Runtime>(self.sizes().size() == spatial + 2, OpName(op), "expected input with ",
                            spatial + 2, " dimensions (batch, channels and ", spatial,
                            " more), got shape ", self.sizes());
  const bool bytes = self.dtype() == ScalarType::UInt8;
  // PyTorch's images of bytes hold bytes between their dimensions, too; halves go up. The kernel of
  // the CPU does it itself.
  const bool in_steps = bytes && spatial == 2 && !mode.starts_with("nearest");
  const bool as_bytes = in_steps && self.is_cpu();
  const bool narrow = (bytes && !as_bytes) || self.dtype() == ScalarType::Float16 ||
                      self.dtype() == ScalarType::BFloat16;
  Tensor t = narrow ? aten::to(self, ScalarType::Float32) : self;
  for (size_t d = spatial; d-- > 0;) {
    const Scale scale = scales.begin()[d];
    // Without a given scale, the same size has the same values.
    if (!scale && output_size[d] == t.sizes()[d + 2] && output_size[d] > 0) continue;
    t = renamed(op, "_resample", [&] {
      return aten::_resample(t, static_cast<int64_t>(d + 2), output_size[d], mode, align_corners,
                             scale);
    });
    if (in_steps && !as_bytes)
      t = aten::clamp(aten::floor(aten::add(t, Scalar(0.5))), Scalar(0), Scalar(255));
  }
  if (bytes && !as_bytes) t = aten::clamp(aten::round(t), Scalar(0), Scalar(255));
  if (narrow) return aten::to(t, self.dtype());
  return t.is_same(self) ? aten::clone(self) : t;
}

}  // namespace

Tensor upsample_nearest1d(const Tensor& self, IntList output_size, Scale scales) {
  return upsample("upsample_nearest1d", self, output_size, "nearest", false, {scales});
}
Tensor upsample_nearest2d(const Tensor& self, IntList output_size, Scale scales_h, Scale scales_w) {
  return upsample("upsample_nearest2d", self, output_size, "nearest", false, {scales_h, scales_w});
}
Tensor upsample_nearest3d(const Tensor& self, IntList output_size, Scale scales_d, Scale scales_h,
                          Scale scales_w) {
  return upsample("upsample_nearest3d", self, output_size, "nearest", false,
                  {scales_d, scales_h, scales_w});
}

Tensor _upsample_nearest_exact1d(const Tensor& self, IntList output_size, Scale scales) {
  return upsample("_upsample_nearest_exact1d", self, output_size, "nearest-exact", false, {scales});
}
Tensor _upsample_nearest_exact2d(const Tensor& self, IntList output_size, Scale scales_h,
                                 Scale scales_w) {
  return upsample("_upsample_nearest_exact2d", self, output_size, "nearest-exact", false,
                  {scales_h, scales_w});
}
Tensor _upsample_nearest_exact3d(const Tensor& self, IntList output_size, Scale scales_d,
                                 Scale scales_h, Scale scales_w) {
  return upsample("_upsample_nearest_exact3d", self, output_size, "nearest-exact", false,
                  {scales_d, scales_h, scales_w});
}

Tensor upsample_linear1d(const Tensor& self, IntList output_size, bool align_corners,
                         Scale scales) {
  return upsample("upsample_linear1d", self, output_size, "linear", align_corners, {scales});
}
Tensor upsample_bilinear2d(const Tensor& self, IntList output_size, bool align_corners,
                           Scale scales_h, Scale scales_w) {
  return upsample("upsample_bilinear2d", self, output_size, "linear", align_corners,
                  {scales_h, scales_w});
}
Tensor upsample_trilinear3d(const Tensor& self, IntList output_size, bool align_corners,
                            Scale scales_d, Scale scales_h, Scale scales_w) {
  return upsample("upsample_trilinear3d", self, output_size, "linear", align_corners,
                  {scales_d, scales_h, scales_w});
}
Tensor upsample_bicubic2d(const Tensor& self, IntList output_size, bool align_corners,
                          Scale scales_h, Scale scales_w) {
  return upsample("upsample_bicubic2d", self, output_size, "cubic", align_corners,
                  {scales_h, scales_w});
}
Tensor _upsample_bilinear2d_aa(const Tensor& self, IntList output_size, bool align_corners,
                               Scale scales_h, Scale scales_w) {
  return upsample("_upsample_bilinear2d_aa", self, output_size, "linear-antialias", align_corners,
                  {scales_h, scales_w});
}
Tensor upsample_bilinear2d_aa_vec(const Tensor& input, OptionalIntList output_size,
                                  bool align_corners, std::optional<ArrayRef<double>> scales) {
  const char* const op = "_upsample_bilinear2d_aa";
  check<ErrorKind::Runtime>(output_size.has_value() != scales.has_value(), OpName(op),
                            "expected output_size or scale_factors, got ",
                            output_size ? "both" : "neither");
  if (output_size) return aten::_upsample_bilinear2d_aa(input, *output_size, align_corners);
  check<ErrorKind::Runtime>(scales->size() == 2 && input.dim() == 4, OpName(op),
                            "expected input (N, C, H, W) and scale_factors with 2 entries, got ",
                            scales->size(), " entries for shape ", input.sizes());
  const auto scaled = [&](size_t d) {
    return static_cast<int64_t>(static_cast<double>(input.sizes()[d + 2]) * (*scales)[d]);
  };
  return aten::_upsample_bilinear2d_aa(input, {scaled(0), scaled(1)}, align_corners, (*scales)[0],
                                       (*scales)[1]);
}
Tensor _upsample_bicubic2d_aa(const Tensor& self, IntList output_size, bool align_corners,
                              Scale scales_h, Scale scales_w) {
  return upsample("_upsample_bicubic2d_aa", self, output_size, "cubic-antialias", align_corners,
                  {scales_h, scales_w});
}

}  // namespace treadle::composite
