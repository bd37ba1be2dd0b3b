// The bin of an element in histogram kernels, and the inputs that they refuse, on every device.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/tensor/tensor.h"

namespace treadle {

// Equal bins between two numbers. The last bin includes both its ends.
class EqualBins {
 public:
  // If `low` and `high` are equal, the range is from 1 below to 1 above. RuntimeError if there is
  // no finite range. `count` > 0.
  EqualBins(double low, double high, int64_t count) : low_(low), high_(high), count_(count) {
    if (low_ == high_) {
      low_ -= 1;
      high_ += 1;
    }
    check<ErrorKind::Runtime>(std::isfinite(low_) && std::isfinite(high_), OpName("histc"),
                              "expected a finite range, got [", low_, ", ", high_, "]");
    check<ErrorKind::Runtime>(low_ < high_, OpName("histc"), "expected min < max, got min = ", low_,
                              ", max = ", high_);
    // The width may overflow, and half of a tiny one would be 0.
    scale_ = std::isfinite(high_ - low_) ? 1 : 0.5;
    width_ = high_ * scale_ - low_ * scale_;
  }
  // Where `v` is, counted in bins from the first on; less than 0 if it is outside, or NaN.
  constexpr double place(double v) const {
    constexpr double kOutside = -std::numeric_limits<double>::infinity();
    const double inside = (v >= low_) & (v <= high_) ? v : kOutside;
    return (inside * scale_ - low_ * scale_) / width_ * static_cast<double>(count_);
  }
  // The bin at a place that is not less than 0.
  constexpr int64_t bin_at(double place) const {
    const auto bin = static_cast<int64_t>(place);
    return bin < count_ - 1 ? bin : count_ - 1;
  }
  // The bin of `v`; -1 if it is outside, or NaN.
  constexpr int64_t of(double v) const {
    const double at = place(v);
    return at >= 0 ? bin_at(at) : -1;
  }

 private:
  double low_, high_, scale_, width_;
  int64_t count_;
};

// RuntimeError for edges of which one is NaN, or less than the one before it.
template <class T>
void check_edges(const T* edges, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    check<ErrorKind::Runtime>(i == 0 ? edges[0] == edges[0] : edges[i - 1] <= edges[i],
                              OpName("_histogramdd"), "expected bin edges in ascending order, got ",
                              edges[i], " at ", i);
  }
}

inline void check_bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  check<ErrorKind::Runtime>(self.dim() == 1, OpName("bincount"),
                            "expected self with 1 dimension, got shape ", self.sizes());
  check<ErrorKind::Runtime>(minlength >= 0, OpName("bincount"),
                            "expected minlength >= 0, got minlength = ", minlength);
  check<ErrorKind::Runtime>(!weights.defined() || weights.sizes() == self.sizes(),
                            OpName("bincount"), "expected weights of shape ", self.sizes(),
                            ", got ", weights.defined() ? DimVector(weights.sizes()) : DimVector());
}
// The end of the bin that counts `value`.
inline int64_t bins_up_to(int64_t value) {
  check<ErrorKind::Runtime>(value >= 0 && value < std::numeric_limits<int64_t>::max(),
                            OpName("bincount"), "expected values >= 0, got ", value);
  return value + 1;
}

}  // namespace treadle
