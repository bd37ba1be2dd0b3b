// Numerical integration and differentiation: trapezoid, cumulative_trapezoid,
// gradient.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "aten/ops/add.h"
#include "aten/ops/cat.h"
#include "aten/ops/cumsum.h"
#include "aten/ops/cumulative_trapezoid.h"
#include "aten/ops/diff.h"
#include "aten/ops/div.h"
#include "aten/ops/gradient.h"
#include "aten/ops/mul.h"
#include "aten/ops/narrow.h"
#include "aten/ops/reshape.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "aten/ops/trapezoid.h"
#include "aten/ops/trapz.h"

namespace treadle::composite {
namespace {

// ---- integrals ----

// The areas between neighbouring points, without the factor 1/2 and the distance. Halving comes
// last, so that sums of integers are exact.
Tensor pair_sums(const char* op, const Tensor& y, int64_t& dim) {
  check<ErrorKind::Runtime>(y.dim() > 0, OpName(op),
                            "expected y with at least 1 dimension, got shape ", y.sizes());
  dim = wrap_dim(op, dim, y.dim());
  const int64_t pairs = std::max<int64_t>(0, y.size(dim) - 1);
  const int64_t second = std::min<int64_t>(1, y.size(dim));
  return aten::add(aten::narrow(y, dim, 0, pairs), aten::narrow(y, dim, second, pairs));
}

// Twice the areas between neighbouring points.
Tensor areas(const char* op, const Tensor& y, const Tensor& x, int64_t& dim) {
  const Tensor sums = pair_sums(op, y, dim);
  check<ErrorKind::Runtime>(x.dim() > 0, OpName(op),
                            "expected x with at least 1 dimension, got shape ", x.sizes());
  check<ErrorKind::Runtime>(x.dtype() != ScalarType::Bool, OpName(op),
                            "expected x of a dtype of numbers, got ", x.dtype());
  Tensor steps;
  if (x.dim() == 1) {
    check<ErrorKind::Runtime>(x.size(0) == y.size(dim), OpName(op),
                              "expected as many points x as y has, ", y.size(dim), ", got ",
                              x.size(0));
    DimVector along(static_cast<size_t>(y.dim()), 1);
    along[dim] = sums.size(dim);
    steps = aten::reshape(aten::diff(x), along);
  } else {
    const int64_t own = dim - y.dim() + x.dim();
    check<ErrorKind::Runtime>(own >= 0 && x.size(own) == y.size(dim), OpName(op),
                              "expected as many points x as y has along dim = ", dim,
                              ", got shapes ", x.sizes(), " and ", y.sizes());
    steps = aten::diff(x, 1, own);
  }
  return aten::mul(sums, steps);
}

// Half the distance between points.
Scalar half(const char* op, const Scalar& dx) {
  check<ErrorKind::Runtime>(!dx.is_complex() && !dx.is_bool(), OpName(op),
                            "expected dx as a real number, got dx = ", dx);
  return Scalar(dx.to<double>() / 2);
}

Tensor sum_along(const Tensor& t, int64_t dim) {
  return aten::sum(t, OptionalIntList(IntList(&dim, 1)));
}

// ---- derivatives ----

Tensor part(const Tensor& t, int64_t dim, int64_t first, int64_t length) {
  return aten::narrow(t, dim, first, length);
}

void check_points(const Tensor& self, int64_t dim, int64_t edge_order) {
  check<ErrorKind::Runtime>(self.size(dim) > edge_order, OpName("gradient"), "expected at least ",
                            edge_order + 1, " points along dim = ", dim, ", got shape ",
                            self.sizes());
}

// The derivative along one dimension, for points `step` apart.
Tensor derivative(const Tensor& self, int64_t dim, const Scalar& step, int64_t edge_order) {
  check_points(self, dim, edge_order);
  const int64_t n = self.size(dim);
  const auto at = [&](int64_t i) { return part(self, dim, i, 1); };
  const auto scaled = [](const Tensor& t, double factor) { return aten::mul(t, Scalar(factor)); };
  Tensor first, last;
  if (edge_order == 1) {
    first = aten::div(aten::sub(at(1), at(0)), step);
    last = aten::div(aten::sub(at(n - 1), at(n - 2)), step);
  } else {
    first = aten::div(
        aten::sub(aten::sub(scaled(at(1), 2), scaled(at(0), 1.5)), scaled(at(2), 0.5)), step);
    last = aten::div(
        aten::add(aten::sub(scaled(at(n - 1), 1.5), scaled(at(n - 2), 2)), scaled(at(n - 3), 0.5)),
        step);
  }
  if (n == 2) return aten::cat({first, last}, dim);
  const Tensor middle =
      scaled(aten::div(aten::sub(part(self, dim, 2, n - 2), part(self, dim, 0, n - 2)), step), 0.5);
  return aten::cat({first, middle, last}, dim);
}

// The same for points at the coordinates `x`, by the parabola through three of
// them.
Tensor derivative(const Tensor& self, int64_t dim, const Tensor& x, int64_t edge_order) {
  check_points(self, dim, edge_order);
  const int64_t n = self.size(dim);
  check<ErrorKind::Runtime>(x.dim() == 1 && x.size(0) == n, OpName("gradient"), "expected ", n,
                            " coordinates for dim = ", dim, ", got shape ", x.sizes());
  DimVector along(static_cast<size_t>(self.dim()), 1);
  along[dim] = n - 1;
  const Tensor steps = aten::reshape(aten::diff(x), along);
  const auto at = [&](int64_t i) { return part(self, dim, i, 1); };
  const auto step = [&](int64_t i) { return part(steps, dim, i, 1); };
  const auto slope = [&](int64_t i) { return aten::div(aten::sub(at(i + 1), at(i)), step(i)); };
  Tensor first = slope(0), last = slope(n - 2);
  if (n == 2) return aten::cat({first, last}, dim);
  // Slopes of the pieces; the derivative in between is their mean, weighted by
  // the other distance.
  const Tensor slopes =
      aten::div(aten::sub(part(self, dim, 1, n - 1), part(self, dim, 0, n - 1)), steps);
  const Tensor left = part(steps, dim, 0, n - 2), right = part(steps, dim, 1, n - 2);
  const Tensor middle = aten::div(aten::add(aten::mul(part(slopes, dim, 0, n - 2), right),
                                            aten::mul(part(slopes, dim, 1, n - 2), left)),
                                  aten::add(left, right));
  if (edge_order == 2) {
    const auto end = [&](const Tensor& near, const Tensor& far, int64_t near_step,
                         int64_t far_step) {
      const Tensor turn =
          aten::div(aten::sub(near, far), aten::add(step(near_step), step(far_step)));
      return aten::add(near, aten::mul(turn, step(near_step)));
    };
    first = end(slope(0), slope(1), 0, 1);
    last = end(slope(n - 2), slope(n - 3), n - 2, n - 3);
  }
  return aten::cat({first, middle, last}, dim);
}

DimVector gradient_dims(const Tensor& self, OptionalIntList dim) {
  return wrap_dims("gradient", dim, self.dim(), true);
}
OptionalIntList one_or_all(const std::optional<int64_t>& dim) {
  return dim ? OptionalIntList(IntList(&*dim, 1)) : OptionalIntList();
}

template <class Spacing>
std::vector<Tensor> gradients(const Tensor& self, OptionalIntList dim,
                              std::optional<size_t> spacings, Spacing&& spacing,
                              int64_t edge_order) {
  check<ErrorKind::Runtime>(self.dim() > 0 || (dim && dim->empty()), OpName("gradient"),
                            "expected at least 1 dimension, got a 0-dim tensor");
  const DimVector dims = dim && dim->empty() ? DimVector() : gradient_dims(self, dim);
  check<ErrorKind::Runtime>(!spacings || *spacings == dims.size(), OpName("gradient"),
                            "expected a spacing for each of ", dims.size(), " dimensions, got ",
                            spacings.value_or(0));
  const Tensor values = is_integral(self.dtype(), true) ? aten::to(self, default_dtype()) : self;
  std::vector<Tensor> results;
  for (size_t i = 0; i < dims.size(); ++i)
    results.push_back(derivative(values, dims[i], spacing(i), edge_order));
  return results;
}

}  // namespace

Tensor trapezoid_x(const Tensor& y, const Tensor& x, int64_t dim) {
  const Tensor pieces = areas("trapezoid", y, x, dim);
  return aten::div(sum_along(pieces, pieces.dim() - y.dim() + dim), Scalar(2));
}
Tensor trapezoid_dx(const Tensor& y, const Scalar& dx, int64_t dim) {
  const Scalar factor = half("trapezoid", dx);
  const Tensor sums = pair_sums("trapezoid", y, dim);
  return aten::mul(sum_along(sums, dim), factor);
}
Tensor trapz_dx(const Tensor& y, double dx, int64_t dim) {
  return trapezoid_dx(y, Scalar(dx), dim);
}
Tensor cumulative_trapezoid_x(const Tensor& y, const Tensor& x, int64_t dim) {
  const Tensor pieces = areas("cumulative_trapezoid", y, x, dim);
  return aten::div(aten::cumsum(pieces, pieces.dim() - y.dim() + dim), Scalar(2));
}
Tensor cumulative_trapezoid_dx(const Tensor& y, const Scalar& dx, int64_t dim) {
  const Scalar factor = half("cumulative_trapezoid", dx);
  const Tensor sums = pair_sums("cumulative_trapezoid", y, dim);
  return aten::mul(aten::cumsum(sums, dim), factor);
}

std::vector<Tensor> gradient_scalarint(const Tensor& self, const std::optional<Scalar>& spacing,
                                       std::optional<int64_t> dim, int64_t edge_order) {
  const Scalar step = spacing.value_or(Scalar(1));
  return gradients(
      self, one_or_all(dim), std::nullopt, [=](size_t) { return step; }, edge_order);
}
std::vector<Tensor> gradient_scalararray(const Tensor& self, const Scalar& spacing, IntList dim,
                                         int64_t edge_order) {
  return gradients(
      self, dim, std::nullopt, [=](size_t) { return spacing; }, edge_order);
}
std::vector<Tensor> gradient_array(const Tensor& self, IntList dim, int64_t edge_order) {
  return gradients(
      self, dim, std::nullopt, [](size_t) { return Scalar(1); }, edge_order);
}
std::vector<Tensor> gradient_scalarrayint(const Tensor& self, DoubleList spacing,
                                          std::optional<int64_t> dim, int64_t edge_order) {
  return gradients(
      self, one_or_all(dim), spacing.size(), [=](size_t i) { return Scalar(spacing[i]); },
      edge_order);
}
std::vector<Tensor> gradient_scalarrayarray(const Tensor& self, DoubleList spacing, IntList dim,
                                            int64_t edge_order) {
  return gradients(
      self, dim, spacing.size(), [=](size_t i) { return Scalar(spacing[i]); }, edge_order);
}
std::vector<Tensor> gradient_tensorarrayint(const Tensor& self, TensorList spacing,
                                            std::optional<int64_t> dim, int64_t edge_order) {
  return gradients(
      self, one_or_all(dim), spacing.size(), [=](size_t i) -> const Tensor& { return spacing[i]; },
      edge_order);
}
std::vector<Tensor> gradient_tensorarray(const Tensor& self, TensorList spacing, IntList dim,
                                         int64_t edge_order) {
  return gradients(
      self, dim, spacing.size(), [=](size_t i) -> const Tensor& { return spacing[i]; }, edge_order);
}

}  // namespace treadle::composite
