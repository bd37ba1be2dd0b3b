// Factories that take their numbers from tensors, and the older forms of factories.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "aten/ops/_linear_.h"
#include "aten/ops/copy.h"
#include "aten/ops/copy_.h"
#include "aten/ops/creation/factory_options.h"
#include "aten/ops/empty.h"
#include "aten/ops/empty_like.h"
#include "aten/ops/empty_permuted.h"
#include "aten/ops/item.h"
#include "aten/ops/linspace.h"
#include "aten/ops/logspace.h"
#include "aten/ops/permute.h"
#include "aten/ops/range.h"

namespace treadle::composite {
namespace {

Scalar number(const Tensor& t) { return aten::item(t); }
const Scalar& number(const Scalar& s) { return s; }

template <class Start, class End>
Tensor linspace_of(const Start& start, const End& end, int64_t steps, OptDtype dtype,
                   OptLayout layout, OptDevice device, OptBool pin_memory) {
  return aten::linspace(number(start), number(end), steps, dtype, layout, device, pin_memory);
}
template <class Start, class End>
Tensor logspace_of(const Start& start, const End& end, int64_t steps, double base, OptDtype dtype,
                   OptLayout layout, OptDevice device, OptBool pin_memory) {
  return aten::logspace(number(start), number(end), steps, base, dtype, layout, device, pin_memory);
}

}  // namespace

Tensor linspace_tensors(const Tensor& start, const Tensor& end, int64_t steps, OptDtype dtype,
                        OptLayout layout, OptDevice device, OptBool pin_memory) {
  return linspace_of(start, end, steps, dtype, layout, device, pin_memory);
}
Tensor linspace_tensors(const Tensor& start, const Scalar& end, int64_t steps, OptDtype dtype,
                        OptLayout layout, OptDevice device, OptBool pin_memory) {
  return linspace_of(start, end, steps, dtype, layout, device, pin_memory);
}
Tensor linspace_tensors(const Scalar& start, const Tensor& end, int64_t steps, OptDtype dtype,
                        OptLayout layout, OptDevice device, OptBool pin_memory) {
  return linspace_of(start, end, steps, dtype, layout, device, pin_memory);
}
Tensor logspace_tensors(const Tensor& start, const Tensor& end, int64_t steps, double base,
                        OptDtype dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  return logspace_of(start, end, steps, base, dtype, layout, device, pin_memory);
}
Tensor logspace_tensors(const Tensor& start, const Scalar& end, int64_t steps, double base,
                        OptDtype dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  return logspace_of(start, end, steps, base, dtype, layout, device, pin_memory);
}
Tensor logspace_tensors(const Scalar& start, const Tensor& end, int64_t steps, double base,
                        OptDtype dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  return logspace_of(start, end, steps, base, dtype, layout, device, pin_memory);
}

Tensor range_step(const Scalar& start, const Scalar& end, const Scalar& step, OptDtype dtype,
                  OptLayout layout, OptDevice device, OptBool pin_memory) {
  const FactoryOptions options("range", dtype, layout, device, pin_memory, default_dtype());
  const double first = start.to<double>(), last = end.to<double>(), by = step.to<double>();
  check<ErrorKind::Runtime>(by != 0, OpName("range"), "expected step != 0, got step = ", step);
  check<ErrorKind::Runtime>(std::isfinite(first) && std::isfinite(last) && std::isfinite(by) &&
                                !start.is_complex() && !end.is_complex() && !step.is_complex(),
                            OpName("range"), "expected finite real numbers, got start = ", start,
                            ", end = ", end, ", step = ", step);
  check<ErrorKind::Runtime>(first == last || (last > first) == (by > 0), OpName("range"),
                            "expected a step from start towards end, got start = ", start,
                            ", end = ", end, ", step = ", step);
  const double length = std::floor((last - first) / by) + 1;
  check<ErrorKind::Runtime>(length < 9e18, OpName("range"),
                            "expected a length that can be counted, got ", length);
  return fresh(aten::_linear_(options.empty({static_cast<int64_t>(length)}), start, step));
}
Tensor range(const Scalar& start, const Scalar& end, OptDtype dtype, OptLayout layout,
             OptDevice device, OptBool pin_memory) {
  return composite::range_step(start, end, Scalar(1), dtype, layout, device, pin_memory);
}

Tensor empty_permuted(IntList size, IntList physical_layout, OptDtype dtype, OptLayout layout,
                      OptDevice device, OptBool pin_memory) {
  const FactoryOptions options("empty_permuted", dtype, layout, device, pin_memory,
                               default_dtype());
  const int64_t rank = static_cast<int64_t>(size.size());
  check<ErrorKind::Runtime>(physical_layout.size() == size.size(), OpName("empty_permuted"),
                            "expected a place for each of ", rank,
                            " dimensions, got physical_layout = ", physical_layout);
  for (const int64_t d : physical_layout) {
    check<ErrorKind::Runtime>(d >= 0 && d < rank, OpName("empty_permuted"),
                              "expected physical_layout with entries in [0, ", rank,
                              "), got physical_layout = ", physical_layout);
  }
  const DimVector order = wrap_dims("empty_permuted", physical_layout, rank, false);
  DimVector physical, back(size.size());
  for (size_t i = 0; i < order.size(); ++i) {
    physical.push_back(size[order[i]]);
    back[order[i]] = static_cast<int64_t>(i);
  }
  return aten::permute(aten::empty(physical, options.dtype, std::nullopt, options.device), back);
}

Tensor copy(const Tensor& self, const Tensor& src, bool non_blocking) {
  return fresh(aten::copy_(aten::empty_like(self), src, non_blocking));
}

}  // namespace treadle::composite
