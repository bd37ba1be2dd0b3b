// Gradients of padding, interpolation and sampling; grid_sampler as a composition of operators.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/resampling/gradients.h"

#include <vector>

#include "aten/ops/_grid_sampler_backward.h"
#include "aten/ops/add.h"
#include "aten/ops/constant_pad_nd.h"
#include "aten/ops/detach.h"
#include "aten/ops/div.h"
#include "aten/ops/eq.h"
#include "aten/ops/expand.h"
#include "aten/ops/floor.h"
#include "aten/ops/gather.h"
#include "aten/ops/ge.h"
#include "aten/ops/gt.h"
#include "aten/ops/isfinite.h"
#include "aten/ops/logical_and.h"
#include "aten/ops/lt.h"
#include "aten/ops/mul.h"
#include "aten/ops/neg.h"
#include "aten/ops/ones_like.h"
#include "aten/ops/remainder.h"
#include "aten/ops/resampling/grid_mode.h"
#include "aten/ops/reshape.h"
#include "aten/ops/round.h"
#include "aten/ops/rsub.h"
#include "aten/ops/select.h"
#include "aten/ops/sub.h"
#include "aten/ops/to.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/where.h"
#include "aten/ops/zeros_like.h"
#include "autograd/graph/engine.h"

namespace treadle::autograd {
namespace {

Scalar number(double v) { return Scalar(v); }

// A position brought inside [0, last], NaN to 0. On the border and beyond, the position is
// constant. Its slope is 0, as in the kernel.
Tensor clipped(const Tensor& at, double last) {
  const Tensor inside = aten::logical_and(aten::gt(at, number(0)), aten::lt(at, number(last)));
  const Tensor end = aten::mul(aten::to(aten::ge(at, number(last)), at.dtype()), number(last));
  return aten::where(inside, at, end);
}

// A position brought inside [0, size) as the padding mode says.
Tensor padded(Tensor at, int64_t size, const GridMode& s) {
  const double last = static_cast<double>(size - 1);
  if (s.padding == GridMode::kZeros) return at;
  if (s.padding == GridMode::kReflection) {
    const double low = s.align_corners ? 0.0 : -0.5, span = s.align_corners ? last : last + 1;
    if (span == 0) return aten::zeros_like(at);
    const Tensor offset = aten::sub(at, number(low));
    const Tensor distance = aten::where(aten::lt(offset, number(0)), aten::neg(offset), offset);
    const Tensor turns = aten::detach(aten::floor(aten::div(distance, number(span))));
    const Tensor even = aten::eq(aten::remainder(turns, number(2)), number(0));
    const Tensor extra = aten::sub(distance, aten::mul(turns, number(span)));
    at = aten::add(aten::where(even, extra, aten::rsub(extra, number(span))), number(low));
  }
  return clipped(at, last);
}

// One neighbour of every point along one dimension.
struct Neighbour {
  Tensor index;   // inside the image always
  Tensor inside;  // whether the neighbour is; outside nothing is read, which could be infinite
  Tensor weight;
};

Neighbour neighbour(const Tensor& at, const Tensor& weight, int64_t size) {
  const Tensor inside =
      aten::logical_and(aten::ge(at, number(0)), aten::lt(at, number(static_cast<double>(size))));
  return {aten::to(aten::where(inside, at, number(0)), ScalarType::Int64), inside,
          aten::where(inside, weight, number(0))};
}

// Keys' cubic kernel (a = -0.75) at distances within [0, 1] and [1, 2].
Tensor cubic_near(const Tensor& x) {
  return aten::add(aten::mul(aten::mul(aten::sub(aten::mul(x, number(1.25)), number(2.25)), x), x),
                   number(1));
}
Tensor cubic_far(const Tensor& x) {
  const Tensor inner = aten::add(aten::mul(aten::sub(x, number(5)), x), number(8));
  return aten::add(aten::mul(aten::mul(inner, x), number(-0.75)), number(3));
}

std::vector<Neighbour> neighbours(const Tensor& coordinate, int64_t size, const GridMode& s) {
  const double half = static_cast<double>(s.align_corners ? size - 1 : size) / 2;
  Tensor pixels = aten::sub(aten::mul(aten::add(coordinate, number(1)), number(half)),
                            number(s.align_corners ? 0.0 : 0.5));
  // A point that is nowhere is outside, far from every pixel.
  if (s.padding == GridMode::kZeros)
    pixels = aten::where(aten::isfinite(pixels), pixels, number(-10));
  if (s.interpolation == GridMode::kCubic) {
    const Tensor left = aten::detach(aten::floor(pixels)), t = aten::sub(pixels, left);
    const Tensor weights[] = {cubic_far(aten::add(t, number(1))), cubic_near(t),
                              cubic_near(aten::rsub(t, number(1))),
                              cubic_far(aten::rsub(t, number(2)))};
    std::vector<Neighbour> all;
    for (int k = 0; k < 4; ++k)
      all.push_back(neighbour(padded(aten::add(left, number(k - 1)), size, s), weights[k], size));
    return all;
  }
  const Tensor at = padded(pixels, size, s);
  if (s.interpolation == GridMode::kNearest) {
    const Tensor nearest = aten::detach(aten::round(at));
    return {neighbour(nearest, aten::ones_like(nearest), size)};
  }
  const Tensor left = aten::detach(aten::floor(at)), t = aten::sub(at, left);
  return {neighbour(left, aten::rsub(t, number(1)), size),
          neighbour(aten::add(left, number(1)), t, size)};
}

// The sampler, from differentiable operators.
Tensor composed(const Tensor& input, const Tensor& grid, const GridMode& s) {
  const int64_t batch = input.size(0), channels = input.size(1), spatial = input.dim() - 2;
  int64_t points = 1, volume = 1;
  DimVector shape{batch, channels};
  for (int64_t d = 1; d <= spatial; ++d) {
    points *= grid.size(d);
    volume *= input.size(d + 1);
    shape.push_back(grid.size(d));
  }
  const Tensor flat = aten::reshape(input, {batch, channels, volume});
  // Neighbours in the volume, found dimension by dimension.
  std::vector<Neighbour> all;
  for (int64_t d = 0; d < spatial; ++d) {
    const int64_t size = input.size(d + 2);
    const Tensor coordinate =
        aten::reshape(aten::select(grid, -1, spatial - 1 - d), {batch, points});
    const std::vector<Neighbour> along = neighbours(coordinate, size, s);
    if (d == 0) {
      all = along;
      continue;
    }
    std::vector<Neighbour> product;
    for (const Neighbour& a : all) {
      for (const Neighbour& b : along)
        product.push_back({aten::add(aten::mul(a.index, Scalar(size)), b.index),
                           aten::logical_and(a.inside, b.inside), aten::mul(a.weight, b.weight)});
    }
    all = std::move(product);
  }
  Tensor sum;
  for (const Neighbour& n : all) {
    const Tensor index = aten::expand(aten::unsqueeze(n.index, 1), {batch, channels, points});
    const Tensor read =
        aten::where(aten::unsqueeze(n.inside, 1), aten::gather(flat, 2, index), number(0));
    const Tensor term = aten::mul(read, aten::unsqueeze(n.weight, 1));
    sum = sum.defined() ? aten::add(sum, term) : term;
  }
  return aten::reshape(sum, shape);
}

}  // namespace

Tensor constant_pad_backward(const Tensor& grad, IntList pad) {
  DimVector opposite(pad);
  for (int64_t& p : opposite) p = -p;
  return aten::constant_pad_nd(grad, opposite, Scalar(0));
}

std::tuple<Tensor, Tensor> grid_sampler_backward(const Tensor& grad, const Tensor& input,
                                                 const Tensor& grid, int64_t interpolation_mode,
                                                 int64_t padding_mode, bool align_corners,
                                                 std::array<bool, 2> mask) {
  std::tuple<Tensor, Tensor> result;
  if (!grad_enabled()) {
    result = aten::_grid_sampler_backward(grad, input, grid, interpolation_mode, padding_mode,
                                          align_corners);
    if (!mask[0]) std::get<0>(result).reset();
    if (!mask[1]) std::get<1>(result).reset();
    return result;
  }
  std::vector<Tensor> wanted;
  if (mask[0]) wanted.push_back(input);
  if (mask[1]) wanted.push_back(grid);
  const Tensor out = composed(input, grid, {interpolation_mode, padding_mode, align_corners});
  std::vector<Tensor> found = autograd::grad({out}, wanted, {grad}, true, true, true);
  for (size_t i = 0; i < found.size(); ++i)
    if (!found[i].defined()) found[i] = aten::zeros_like(wanted[i]);
  if (mask[0]) std::get<0>(result) = found.front();
  if (mask[1]) std::get<1>(result) = found.back();
  return result;
}

}  // namespace treadle::autograd
