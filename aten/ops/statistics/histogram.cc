// histogram and related operators: edges of bins, counts between them, and densities.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/histogram.h"

#include <limits>

#include "aten/engine/renamed_errors.h"
#include "aten/ops/_histogramdd.h"
#include "aten/ops/_histogramdd_edges.h"
#include "aten/ops/_histogramdd_hist.h"
#include "aten/ops/amax.h"
#include "aten/ops/amin.h"
#include "aten/ops/clone.h"
#include "aten/ops/diff.h"
#include "aten/ops/div.h"
#include "aten/ops/isfinite.h"
#include "aten/ops/item.h"
#include "aten/ops/linspace.h"
#include "aten/ops/reshape.h"
#include "aten/ops/select.h"
#include "aten/ops/sum.h"

namespace treadle::composite {
namespace {

struct Range {
  double low, high;
};

// The given range, or that of the values; one wide around a single value, as
// NumPy has it.
Range range_of(const char* op, const Tensor& values, std::optional<DoubleList> range, size_t at) {
  Range r{0, 1};
  if (range) {
    r = {(*range)[2 * at], (*range)[2 * at + 1]};
  } else if (values.numel() > 0) {
    r = {aten::item(aten::amin(values)).to<double>(), aten::item(aten::amax(values)).to<double>()};
  }
  check<ErrorKind::Runtime>(std::abs(r.low) <= std::numeric_limits<double>::max() &&
                                std::abs(r.high) <= std::numeric_limits<double>::max(),
                            OpName(op), "expected a finite range, got [", r.low, ", ", r.high, "]");
  check<ErrorKind::Runtime>(r.low <= r.high, OpName(op),
                            "expected a range in ascending order, got [", r.low, ", ", r.high, "]");
  if (r.low == r.high) {
    r.low -= 0.5;
    r.high += 0.5;
  }
  return r;
}

Tensor equal_bins(const Tensor& like, const Range& range, int64_t bins) {
  return aten::linspace(Scalar(range.low), Scalar(range.high), bins + 1, like.dtype(), std::nullopt,
                        like.device());
}

// Points as a matrix; weights as a vector.
Tensor histogram_of(const char* op, const Tensor& points, TensorList edges, const Tensor& weight,
                    bool density) {
  if (weight.defined()) {
    check<ErrorKind::Runtime>(weight.numel() == points.size(0), OpName(op),
                              "expected a weight for each of ", points.size(0),
                              " points, got shape ", weight.sizes());
  }
  Tensor hist = renamed(op, "_histogramdd", [&] {
    return aten::_histogramdd(points, edges,
                              weight.defined() ? aten::reshape(weight, {-1}) : weight);
  });
  if (!density) return hist;
  hist = aten::div(hist, aten::sum(hist));
  for (size_t d = 0; d < edges.size(); ++d) {
    DimVector along(edges.size(), 1);
    along[d] = hist.size(static_cast<int64_t>(d));
    hist = aten::div(hist, aten::reshape(aten::diff(edges[d]), along));
  }
  return hist;
}

Tensor as_points(const char* op, const Tensor& self) {
  check<ErrorKind::Runtime>(self.dim() >= 2 && self.sizes().back() > 0, OpName(op),
                            "expected points of shape (..., d), got shape ", self.sizes());
  int64_t points = 1;
  for (int64_t d = 0; d + 1 < self.dim(); ++d) points *= self.size(d);
  return aten::reshape(self, {points, self.sizes().back()});
}

}  // namespace

std::tuple<Tensor, Tensor> histogram_edges(const Tensor& self, const Tensor& bins,
                                           const Tensor& weight, bool density) {
  check<ErrorKind::Runtime>(bins.dim() == 1, OpName("histogram"), "expected 1-dim bins, got shape ",
                            bins.sizes());
  const Tensor points = aten::reshape(self, {self.numel(), 1});
  return {histogram_of("histogram", points, {bins}, weight, density), aten::clone(bins)};
}

std::tuple<Tensor, Tensor> histogram_count(const Tensor& self, int64_t bins,
                                           std::optional<DoubleList> range, const Tensor& weight,
                                           bool density) {
  check<ErrorKind::Runtime>(!range || range->size() == 2, OpName("histogram"),
                            "expected a range of 2 numbers, got ", range ? range->size() : 0);
  check<ErrorKind::Runtime>(bins < INT64_MAX, OpName("histogram"),
                            "expected fewer bins, got bins = ", bins);
  const Tensor edges = equal_bins(self, range_of("histogram", self, range, 0), bins);
  const Tensor points = aten::reshape(self, {self.numel(), 1});
  return {histogram_of("histogram", points, {edges}, weight, density), edges};
}

std::vector<Tensor> _histogramdd_edges(const Tensor& self, IntList bins,
                                       std::optional<DoubleList> range) {
  const Tensor points = as_points("histogramdd", self);
  const size_t dims = static_cast<size_t>(points.size(1));
  check<ErrorKind::Runtime>(bins.size() == dims, OpName("histogramdd"),
                            "expected bins for each of ", dims, " dimensions, got bins = ", bins);
  check<ErrorKind::Runtime>(!range || range->size() == 2 * dims, OpName("histogramdd"),
                            "expected a range of ", 2 * dims, " numbers, got ",
                            range ? range->size() : 0);
  std::vector<Tensor> edges;
  for (size_t d = 0; d < dims; ++d) {
    check<ErrorKind::Runtime>(bins[d] < INT64_MAX, OpName("histogramdd"),
                              "expected fewer bins, got ", bins);
    const Tensor column = aten::select(points, 1, static_cast<int64_t>(d));
    edges.push_back(equal_bins(self, range_of("histogramdd", column, range, d), bins[d]));
  }
  return edges;
}

Tensor _histogramdd_hist(const Tensor& self, TensorList bins, const Tensor& weight, bool density) {
  return histogram_of("histogramdd", as_points("histogramdd", self), bins, weight, density);
}

}  // namespace treadle::composite
