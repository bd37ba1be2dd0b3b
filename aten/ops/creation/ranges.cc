// Factories whose values follow a rule: ranges, the identity, indices of triangles, grids, complex
// numbers from parts.
//
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <vector>

#include "aten/engine/strides/view_shapes.h"
#include "aten/ops/_linear_.h"
#include "aten/ops/_linspace_.h"
#include "aten/ops/_triangle_indices_.h"
#include "aten/ops/arange.h"
#include "aten/ops/complex.h"
#include "aten/ops/cos.h"
#include "aten/ops/creation/factory_options.h"
#include "aten/ops/diagonal.h"
#include "aten/ops/expand.h"
#include "aten/ops/eye.h"
#include "aten/ops/fill_.h"
#include "aten/ops/linspace.h"
#include "aten/ops/logspace.h"
#include "aten/ops/meshgrid.h"
#include "aten/ops/mul.h"
#include "aten/ops/polar.h"
#include "aten/ops/pow.h"
#include "aten/ops/sin.h"
#include "aten/ops/stack.h"
#include "aten/ops/to.h"
#include "aten/ops/tril_indices.h"
#include "aten/ops/triu_indices.h"
#include "aten/ops/view.h"
#include "aten/ops/view_as_complex.h"
#include "aten/ops/zeros.h"

namespace treadle::composite {
namespace {

__int128 exact(const Scalar& s) {
  return s.exceeds_int64() ? static_cast<__int128>(s.to<uint64_t>()) : s.to<int64_t>();
}

int64_t range_length(const Scalar& start, const Scalar& end, const Scalar& step) {
  const auto inconsistent = [&](bool ok) {
    check<ErrorKind::Runtime>(ok, OpName("arange"),
                              "expected a step that leads from start to end, got start = ", start,
                              ", end = ", end, ", step = ", step);
  };
  check<ErrorKind::Runtime>(!start.is_complex() && !end.is_complex() && !step.is_complex(),
                            OpName("arange"), "expected real numbers, got start = ", start,
                            ", end = ", end, ", step = ", step);
  check<ErrorKind::Runtime>(!step.equal(0), OpName("arange"),
                            "expected step != 0, got step = ", step);
  if (start.is_integral() && end.is_integral() && step.is_integral()) {
    const __int128 by = exact(step), span = exact(end) - exact(start);
    inconsistent(span == 0 || (span > 0) == (by > 0));
    const __int128 length = (span + by - (by > 0 ? 1 : -1)) / by;
    check<ErrorKind::Runtime>(length <= INT64_MAX, OpName("arange"),
                              "expected a length that can be counted, got start = ", start,
                              ", end = ", end);
    return static_cast<int64_t>(length);
  }
  const double first = start.to<double>(), last = end.to<double>(), by = step.to<double>();
  check<ErrorKind::Runtime>(std::isfinite(first) && std::isfinite(last) && std::isfinite(by),
                            OpName("arange"), "expected finite numbers, got start = ", start,
                            ", end = ", end, ", step = ", step);
  inconsistent(first == last || (last > first) == (by > 0));
  const double length = std::ceil((last - first) / by);
  check<ErrorKind::Runtime>(length < 9e18, OpName("arange"),
                            "expected a length that can be counted, got start = ", start,
                            ", end = ", end, ", step = ", step);
  return static_cast<int64_t>(length);
}

Scalar widest(const Scalar& a, const Scalar& b) { return a.kind() >= b.kind() ? a : b; }

// Elements of the lower triangle, diagonal `offset` included, of a matrix.
__int128 lower_count(int64_t row, int64_t col, int64_t offset) {
  const __int128 rows = row, columns = col, off = offset;
  const __int128 first = std::clamp<__int128>(-off, 0, rows);  // the first row that has any
  const __int128 full =
      std::clamp<__int128>(columns - off - 1, first, rows);  // the first row that has all
  const __int128 partial = (full - first) * (first + off + 1 + full + off) / 2;
  return partial + (rows - full) * columns;
}

Tensor triangle_indices(const char* op, int64_t row, int64_t col, int64_t offset, bool upper,
                        const FactoryOptions& options) {
  constexpr int64_t kMax = int64_t{1} << 31;
  check<ErrorKind::Value>(row <= kMax && col <= kMax, OpName(op),
                          "expected row and col <= 2^31, got row = ", row, ", col = ", col);
  offset = std::clamp(offset, -kMax - 1, kMax + 1);
  const __int128 count = upper
                             ? static_cast<__int128>(row) * col - lower_count(row, col, offset - 1)
                             : lower_count(row, col, offset);
  const Tensor indices = options.empty({2, static_cast<int64_t>(count)});
  return fresh(aten::_triangle_indices_(indices, row, col, offset, upper));
}

// Ranges of integers begin and step by integers: fractions do not add up.
Scalar in_dtype(const char* op, const Scalar& number, ScalarType dtype) {
  if (!is_integral(dtype, false) || number.is_integral()) return number;
  return Scalar(number.checked_to<int64_t>(op));
}

}  // namespace

Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, OptDtype dtype,
              OptLayout layout, OptDevice device, OptBool pin_memory) {
  const Scalar kind = widest(widest(start, end), step);
  const ScalarType own = kind.is_integral() ? ScalarType::Int64 : kind.type();
  const FactoryOptions options("arange", dtype, layout, device, pin_memory, own);
  return fresh(aten::_linear_(options.empty({range_length(start, end, step)}),
                              in_dtype("arange", start, options.dtype),
                              in_dtype("arange", step, options.dtype)));
}

Tensor arange(const Scalar& start, const Scalar& end, OptDtype dtype, OptLayout layout,
              OptDevice device, OptBool pin_memory) {
  return composite::arange(start, end, Scalar(1), dtype, layout, device, pin_memory);
}

Tensor arange(const Scalar& end, OptDtype dtype, OptLayout layout, OptDevice device,
              OptBool pin_memory) {
  return composite::arange(Scalar(0), end, Scalar(1), dtype, layout, device, pin_memory);
}

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, OptDtype dtype,
                OptLayout layout, OptDevice device, OptBool pin_memory) {
  const bool complex = start.is_complex() || end.is_complex();
  const FactoryOptions options("linspace", dtype, layout, device, pin_memory,
                               complex ? to_complex(default_dtype()) : default_dtype());
  check<ErrorKind::Runtime>(!complex || is_complex(options.dtype), OpName("linspace"),
                            "expected a complex dtype for complex numbers, got ", options.dtype);
  return fresh(aten::_linspace_(options.empty({steps}), in_dtype("linspace", start, options.dtype),
                                in_dtype("linspace", end, options.dtype)));
}

Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base, OptDtype dtype,
                OptLayout layout, OptDevice device, OptBool pin_memory) {
  const bool complex = start.is_complex() || end.is_complex();
  const FactoryOptions options("logspace", dtype, layout, device, pin_memory,
                               complex ? to_complex(default_dtype()) : default_dtype());
  check<ErrorKind::Runtime>(!complex || is_complex(options.dtype), OpName("logspace"),
                            "expected a complex dtype for complex numbers, got ", options.dtype);
  const ScalarType exact = is_complex(options.dtype) ? ScalarType::Complex128 : ScalarType::Float64;
  const Tensor exponents = aten::linspace(in_dtype("logspace", start, options.dtype),
                                          in_dtype("logspace", end, options.dtype), steps, exact,
                                          std::nullopt, options.device);
  return aten::to(aten::pow(Scalar(base), exponents), options.dtype);
}

Tensor eye(int64_t n, int64_t m, OptDtype dtype, OptLayout layout, OptDevice device,
           OptBool pin_memory) {
  const Tensor matrix = aten::zeros({n, m}, dtype, layout, device, pin_memory);
  aten::fill_(aten::diagonal(matrix), Scalar(1));
  return fresh(matrix);
}

Tensor eye(int64_t n, OptDtype dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  return composite::eye(n, n, dtype, layout, device, pin_memory);
}

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, OptDtype dtype, OptLayout layout,
                    OptDevice device, OptBool pin_memory) {
  const FactoryOptions options("tril_indices", dtype, layout, device, pin_memory,
                               ScalarType::Int64);
  return triangle_indices("tril_indices", row, col, offset, false, options);
}

Tensor triu_indices(int64_t row, int64_t col, int64_t offset, OptDtype dtype, OptLayout layout,
                    OptDevice device, OptBool pin_memory) {
  const FactoryOptions options("triu_indices", dtype, layout, device, pin_memory,
                               ScalarType::Int64);
  return triangle_indices("triu_indices", row, col, offset, true, options);
}

std::vector<Tensor> meshgrid(TensorList tensors) {
  check<ErrorKind::Runtime>(!tensors.empty(), OpName("meshgrid"),
                            "expected at least one tensor, got none");
  DimVector sizes;
  for (const Tensor& t : tensors) {
    check<ErrorKind::Runtime>(t.dim() <= 1, OpName("meshgrid"),
                              "expected tensors of 0 or 1 dimensions, got ", t.dim());
    check<ErrorKind::Runtime>(t.dtype() == tensors[0].dtype() && t.device() == tensors[0].device(),
                              OpName("meshgrid"),
                              "expected tensors of one dtype on one device, got ",
                              tensors[0].dtype(), " and ", t.dtype());
    sizes.push_back(t.numel());
  }
  std::vector<Tensor> grids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    DimVector along(tensors.size(), 1);
    along[i] = sizes[i];
    grids.push_back(aten::expand(aten::view(tensors[i], IntList(along)), sizes));
  }
  return grids;
}

std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing) {
  check<ErrorKind::Runtime>(indexing == "ij" || indexing == "xy", OpName("meshgrid"),
                            "expected indexing \"ij\" or \"xy\", got \"", indexing, "\"");
  if (indexing == "ij" || tensors.size() < 2) return composite::meshgrid(tensors);
  std::vector<Tensor> swapped = tensors.vec();
  std::swap(swapped[0], swapped[1]);
  std::vector<Tensor> grids = composite::meshgrid(swapped);
  std::swap(grids[0], grids[1]);
  return grids;
}

Tensor complex(const Tensor& real, const Tensor& imag) {
  check<ErrorKind::NotImplemented>(
      is_floating(imag.dtype()) && imag.dtype() != ScalarType::BFloat16, OpName("complex"),
      "expected imag of a dtype in (float16, float32, float64), got ", imag.dtype());
  check<ErrorKind::Runtime>(real.dtype() == imag.dtype(), OpName("complex"),
                            "expected real and imag of one dtype, got ", real.dtype(), " and ",
                            imag.dtype());
  const DimVector sizes = shape::broadcast_sizes("complex", real.sizes(), imag.sizes());
  const Tensor parts[] = {aten::expand(real, sizes), aten::expand(imag, sizes)};
  return aten::view_as_complex(aten::stack(TensorList(parts, 2), -1));
}

Tensor polar(const Tensor& abs, const Tensor& angle) {
  return composite::complex(aten::mul(abs, aten::cos(angle)), aten::mul(abs, aten::sin(angle)));
}

}  // namespace treadle::composite
