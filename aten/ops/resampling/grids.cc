// Sampling grids: grid_sampler for images or volumes, and the grid of an affine map.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/renamed_errors.h"
#include "aten/ops/affine_grid_generator.h"
#include "aten/ops/bmm.h"
#include "aten/ops/expand.h"
#include "aten/ops/grid_sampler.h"
#include "aten/ops/grid_sampler_2d.h"
#include "aten/ops/grid_sampler_3d.h"
#include "aten/ops/linspace.h"
#include "aten/ops/mul.h"
#include "aten/ops/new_zeros.h"
#include "aten/ops/ones_like.h"
#include "aten/ops/reshape.h"
#include "aten/ops/stack.h"
#include "aten/ops/transpose.h"
#include "core/base/error.h"

namespace treadle::composite {
namespace {

// Coordinates of `steps` pixels over [-1, 1]: their centres, or the outer ones at the ends.
Tensor coordinates(const Tensor& like, int64_t steps, bool align_corners) {
  if (steps <= 1) return aten::new_zeros(like, {steps});
  const Tensor ends =
      aten::linspace(Scalar(-1.0), Scalar(1.0), steps, like.dtype(), std::nullopt, like.device());
  if (align_corners) return ends;
  return aten::mul(ends, Scalar(static_cast<double>(steps - 1) / static_cast<double>(steps)));
}

}  // namespace

Tensor grid_sampler(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                    int64_t padding_mode, bool align_corners) {
  if (input.dim() == 5) {
    return renamed("grid_sampler", "grid_sampler_3d", [&] {
      return aten::grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners);
    });
  }
  return renamed("grid_sampler", "grid_sampler_2d", [&] {
    return aten::grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners);
  });
}

Tensor affine_grid_generator(const Tensor& theta, IntList size, bool align_corners) {
  const size_t spatial = size.size() - 2;
  check<ErrorKind::Runtime>(size.size() == 4 || size.size() == 5, OpName("affine_grid_generator"),
                            "expected size with 4 or 5 entries, got ", size);
  const auto n = static_cast<int64_t>(spatial);
  check<ErrorKind::Runtime>(
      theta.dim() == 3 && theta.size(0) == size[0] && theta.size(1) == n && theta.size(2) == n + 1,
      OpName("affine_grid_generator"), "expected theta of shape (", size[0], ", ", n, ", ", n + 1,
      ") for size = ", size, ", got ", theta.sizes());
  const IntList points = size.slice(2);
  checked_numel(points, 8 * (n + 1));
  // (points, coordinates and a one), the last dimension of the image first.
  std::vector<Tensor> columns;
  for (size_t d = spatial; d-- > 0;) {
    DimVector along(spatial, 1);
    along[d] = points[d];
    columns.push_back(
        aten::expand(aten::reshape(coordinates(theta, points[d], align_corners), along), points));
  }
  columns.push_back(aten::ones_like(columns[0]));
  const int64_t count = checked_numel(points);
  const Tensor base = aten::expand(aten::reshape(aten::stack(columns, -1), {1, count, n + 1}),
                                   {size[0], count, n + 1});
  DimVector shape{size[0]};
  for (const int64_t p : points) shape.push_back(p);
  shape.push_back(n);
  return aten::reshape(aten::bmm(base, aten::transpose(theta, 1, 2)), shape);
}

}  // namespace treadle::composite
