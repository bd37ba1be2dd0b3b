// Shape rules of histograms.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/statistics/shape_histogram.h"

#include <cmath>

namespace treadle::shape {

TensorSpec histc(const char* op, const Tensor& self, int64_t bins, const Scalar& min,
                 const Scalar& max) {
  check<ErrorKind::Runtime>(!min.is_complex() && !max.is_complex(), OpName(op),
                            "expected real min and max, got min = ", min, ", max = ", max);
  const double low = min.to<double>(), high = max.to<double>();
  check<ErrorKind::Runtime>(std::isfinite(low) && std::isfinite(high), OpName(op),
                            "expected a finite range, got min = ", min, ", max = ", max);
  check<ErrorKind::Runtime>(low <= high, OpName(op), "expected min <= max, got min = ", min,
                            ", max = ", max);
  checked_numel({bins}, self.element_size());
  return {DimVector{bins}, self.dtype(), self.device()};
}

TensorSpec histogramdd(const char* op, const Tensor& self, TensorList bins, const Tensor& weight) {
  check<ErrorKind::Runtime>(
      self.dim() == 2 && self.size(1) > 0 && self.size(1) == static_cast<int64_t>(bins.size()),
      OpName(op), "expected edges for each column of the points, got ", bins.size(),
      " for points of shape ", self.sizes());
  TensorSpec spec{DimVector(), self.dtype(), self.device()};
  for (const Tensor& edges : bins) {
    check<ErrorKind::Runtime>(edges.dim() == 1 && edges.numel() >= 2, OpName(op),
                              "expected 1-dim bins with at least 2 edges, got shape ",
                              edges.sizes());
    check<ErrorKind::Runtime>(edges.dtype() == self.dtype(), OpName(op),
                              "expected bins of self's dtype ", self.dtype(), ", got ",
                              edges.dtype());
    common_device(op, {&self, &edges}, {"self", "bins"});
    spec.sizes.push_back(edges.numel() - 1);
  }
  if (weight.defined()) {
    check<ErrorKind::Runtime>(weight.dtype() == self.dtype(), OpName(op),
                              "expected weight of self's dtype ", self.dtype(), ", got ",
                              weight.dtype());
    check<ErrorKind::Runtime>(weight.dim() == 1 && weight.numel() == self.size(0), OpName(op),
                              "expected a weight for each of ", self.size(0), " points, got shape ",
                              weight.sizes());
    common_device(op, {&self, &weight}, {"self", "weight"});
  }
  checked_numel(spec.sizes, self.element_size());
  return spec;
}

}  // namespace treadle::shape
