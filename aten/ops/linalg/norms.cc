// Norms of matrices, condition numbers, and distances.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "aten/ops/_cdist.h"
#include "aten/ops/abs.h"
#include "aten/ops/add.h"
#include "aten/ops/amax.h"
#include "aten/ops/amin.h"
#include "aten/ops/broadcast_tensors.h"
#include "aten/ops/cat.h"
#include "aten/ops/cdist.h"
#include "aten/ops/clamp_min.h"
#include "aten/ops/cosine_similarity.h"
#include "aten/ops/div.h"
#include "aten/ops/eq.h"
#include "aten/ops/index.h"
#include "aten/ops/linalg/shape.h"
#include "aten/ops/linalg_cond.h"
#include "aten/ops/linalg_inv_ex.h"
#include "aten/ops/linalg_matrix_norm.h"
#include "aten/ops/linalg_norm.h"
#include "aten/ops/linalg_svdvals.h"
#include "aten/ops/linalg_vector_norm.h"
#include "aten/ops/movedim.h"
#include "aten/ops/mul.h"
#include "aten/ops/narrow.h"
#include "aten/ops/norm.h"
#include "aten/ops/pairwise_distance.h"
#include "aten/ops/pdist.h"
#include "aten/ops/select.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "aten/ops/triu_indices.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/where.h"
#include "aten/ops/zeros.h"

namespace treadle::composite {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// The two dimensions of the matrices, row dimension first.
DimVector matrix_dims(const char* op, const Tensor& self, IntList dim) {
  check<ErrorKind::Runtime>(dim.size() == 2, OpName(op), "expected dim with 2 entries, got ", dim);
  shape::require_matrix(op, "input", self);
  return wrap_dims(op, OptionalIntList(dim), self.dim(), false);
}

Tensor converted(const char* op, const Tensor& self, std::optional<ScalarType> dtype) {
  const ScalarType type = dtype.value_or(self.dtype());
  check<ErrorKind::Runtime>(is_floating(type) || is_complex(type), OpName(op),
                            "expected a floating or complex dtype, got ", type);
  check<ErrorKind::Runtime>(is_complex(type) || !self.is_complex(), OpName(op),
                            "expected a complex dtype for ", self.dtype(), ", got ", type);
  return type == self.dtype() ? self : aten::to(self, type);
}

// `f` of the singular values, which lie along the last dimension.
template <class F>
Tensor of_singular_values(const Tensor& self, const DimVector& dims, bool keepdim, F&& f) {
  const Tensor moved = aten::movedim(self, IntList(dims), {-2, -1});
  // There are no decompositions of the 16-bit floats.
  const bool narrow = self.dtype() == ScalarType::Float16 || self.dtype() == ScalarType::BFloat16;
  Tensor result = f(aten::linalg_svdvals(narrow ? aten::to(moved, ScalarType::Float32) : moved));
  if (narrow) result = aten::to(result, self.dtype());
  if (!keepdim) return result;
  const int64_t first = std::min(dims[0], dims[1]), second = std::max(dims[0], dims[1]);
  return aten::unsqueeze(aten::unsqueeze(result, first), second);
}

Tensor extremum(const Tensor& t, int64_t dim, bool largest, bool keepdim) {
  return largest ? aten::amax(t, {dim}, keepdim) : aten::amin(t, {dim}, keepdim);
}

// 1-norms along one dimension, then the largest or smallest along the other.
Tensor of_sums(const Tensor& self, int64_t summed, int64_t other, bool largest, bool keepdim) {
  const Tensor sums =
      aten::linalg_vector_norm(self, 1, OptionalIntList(IntList(&summed, 1)), keepdim);
  if (!keepdim && other > summed) --other;
  return extremum(sums, other, largest, keepdim);
}

// The dimensions that linalg.norm means, all of a vector or matrix by default.
DimVector norm_dims(const Tensor& self, OptionalIntList dim) {
  if (dim && !dim->empty()) {
    check<ErrorKind::Runtime>(dim->size() <= 2, OpName("linalg.norm"),
                              "expected dim with 1 or 2 entries for this ord, got ", *dim);
    return DimVector(*dim);
  }
  check<ErrorKind::Runtime>(self.dim() == 1 || self.dim() == 2, OpName("linalg.norm"),
                            "expected a tensor with 1 or 2 dimensions where ord is "
                            "given and dim is not, got shape ",
                            self.sizes());
  return self.dim() == 1 ? DimVector({0}) : DimVector({0, 1});
}

}  // namespace

Tensor linalg_matrix_norm(const Tensor& self, const Scalar& ord, IntList dim, bool keepdim,
                          std::optional<ScalarType> dtype) {
  const char* const op = "linalg.matrix_norm";
  const double p = ord.to<double>();
  const double magnitude = std::abs(p);
  check<ErrorKind::Runtime>(
      !ord.is_complex() && (magnitude == 1 || magnitude == 2 || magnitude == kInf), OpName(op),
      "expected ord in (1, -1, 2, -2, inf, -inf, 'fro', 'nuc'), got ", ord);
  const DimVector dims = matrix_dims(op, self, dim);
  const Tensor matrix = converted(op, self, dtype);
  if (magnitude == 2) {
    return of_singular_values(matrix, dims, keepdim,
                              [&](const Tensor& s) { return extremum(s, -1, p > 0, false); });
  }
  return magnitude == 1 ? of_sums(matrix, dims[0], dims[1], p > 0, keepdim)
                        : of_sums(matrix, dims[1], dims[0], p > 0, keepdim);
}

Tensor linalg_matrix_norm(const Tensor& self, std::string_view ord, IntList dim, bool keepdim,
                          std::optional<ScalarType> dtype) {
  const char* const op = "linalg.matrix_norm";
  const DimVector dims = matrix_dims(op, self, dim);
  const Tensor matrix = converted(op, self, dtype);
  if (ord == "fro") return aten::linalg_vector_norm(matrix, 2, OptionalIntList(dims), keepdim);
  return of_singular_values(matrix, dims, keepdim,
                            [](const Tensor& s) { return aten::sum(s, OptionalIntList({-1})); });
}

Tensor linalg_norm(const Tensor& self, const std::optional<Scalar>& ord, OptionalIntList dim,
                   bool keepdim, std::optional<ScalarType> dtype) {
  if (!ord) return aten::linalg_vector_norm(self, 2, dim, keepdim, dtype);
  const DimVector dims = norm_dims(self, dim);
  if (dims.size() == 1)
    return aten::linalg_vector_norm(self, *ord, OptionalIntList(dims), keepdim, dtype);
  return aten::linalg_matrix_norm(self, *ord, dims, keepdim, dtype);
}

Tensor linalg_norm(const Tensor& self, std::string_view ord, OptionalIntList dim, bool keepdim,
                   std::optional<ScalarType> dtype) {
  return aten::linalg_matrix_norm(self, ord, norm_dims(self, dim), keepdim, dtype);
}

Tensor norm_str_dim(const Tensor& self, std::string_view p, OptionalIntList dim, bool keepdim,
                    std::optional<ScalarType> dtype) {
  if (p == "fro") return aten::linalg_vector_norm(self, 2, dim, keepdim, dtype);
  const DimVector dims = dim && !dim->empty() ? DimVector(*dim) : DimVector({-2, -1});
  return aten::linalg_matrix_norm(self, p, dims, keepdim, dtype);
}

Tensor norm_optional_dim(const Tensor& self, const std::optional<Scalar>& p, OptionalIntList dim,
                         bool keepdim, std::optional<ScalarType> dtype) {
  return aten::linalg_vector_norm(self, p.value_or(2), dim, keepdim, dtype);
}

namespace {

// norm(A) * norm(A^-1), infinite where there is no inverse.
template <class Norm>
Tensor condition(const Tensor& self, Norm&& norm) {
  shape::require_square("linalg.cond", self);
  const auto [inverse, info] = aten::linalg_inv_ex(self, false);
  return aten::where(aten::eq(info, 0), aten::mul(norm(self), norm(inverse)), Scalar(kInf));
}

Tensor no_condition(const Tensor& self) {
  return aten::zeros(self.sizes().slice(0, self.sizes().size() - 2), to_real(self.dtype()),
                     std::nullopt, self.device());
}

}  // namespace

Tensor linalg_cond(const Tensor& self, const std::optional<Scalar>& p) {
  shape::require_matrix("linalg.cond", "input", self);
  const double order = p ? p->to<double>() : 2;
  if (std::abs(order) != 2 && self.size(-1) != self.size(-2))
    shape::require_square("linalg.cond", self);
  if (self.numel() == 0) return no_condition(self);
  if (std::abs(order) == 2) {
    const Tensor s = aten::linalg_svdvals(self);
    const Tensor first = aten::select(s, -1, 0), last = aten::select(s, -1, -1);
    return order > 0 ? aten::div(first, last) : aten::div(last, first);
  }
  return condition(self, [&](const Tensor& t) { return aten::linalg_matrix_norm(t, *p); });
}

Tensor linalg_cond(const Tensor& self, std::string_view p) {
  shape::require_square("linalg.cond", self);
  if (self.numel() == 0) return no_condition(self);
  return condition(self, [&](const Tensor& t) { return aten::linalg_matrix_norm(t, p); });
}

Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> compute_mode) {
  const int64_t mode = compute_mode.value_or(0);
  check<ErrorKind::Value>(mode >= 0 && mode <= 2, OpName("cdist"),
                          "expected compute_mode in [0, 2], got compute_mode = ", mode);
  return aten::_cdist(x1, x2, p);
}

Tensor pdist(const Tensor& self, double p) {
  // Many points are taken in bands, each with the points from its first one on, since the other
  // half of the pairs is not wanted. The gradient of so many slices would take long.
  constexpr int64_t kMany = 256, kBands = 8;
  const int64_t n = self.size(0);
  if (n >= kMany && !(grad_enabled() && self.requires_grad())) {
    std::vector<Tensor> found;
    found.reserve(static_cast<size_t>(n));
    const int64_t step = (n + kBands - 1) / kBands;
    for (int64_t first = 0; first < n; first += step) {
      const int64_t count = std::min(step, n - first), others = n - first;
      const Tensor all = aten::_cdist(aten::narrow(self, 0, first, count),
                                      aten::narrow(self, 0, first, others), p);
      for (int64_t i = 0; i < count; ++i)
        found.push_back(aten::narrow(aten::select(all, 0, i), 0, i + 1, others - i - 1));
    }
    return aten::cat(found);
  }
  const Tensor pairs = aten::triu_indices(n, n, 1, ScalarType::Int64, std::nullopt, self.device());
  return aten::index(aten::_cdist(self, self, p),
                     {aten::select(pairs, 0, 0), aten::select(pairs, 0, 1)});
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  // Differences of integers without a sign would wrap.
  const auto number = [](const Tensor& x) {
    return is_signed(x.dtype()) ? x : aten::to(x, default_dtype());
  };
  return aten::linalg_vector_norm(aten::add(aten::sub(number(x1), number(x2)), Scalar(eps)),
                                  Scalar(p), OptionalIntList({-1}), keepdim);
}

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  const ScalarType dtype = promote_types(x1.dtype(), x2.dtype());
  check<ErrorKind::Runtime>(is_floating(dtype) || is_complex(dtype), OpName("cosine_similarity"),
                            "expected a floating or complex dtype, got ", dtype);
  // Norms are those of the broadcast tensors.
  const std::vector<Tensor> both = aten::broadcast_tensors({x1, x2});
  const OptionalIntList along(IntList(&dim, 1));
  const auto unit = [&](const Tensor& t) {
    const Tensor x = t.dtype() == dtype ? t : aten::to(t, dtype);
    return aten::div(x, aten::clamp_min(aten::linalg_vector_norm(x, 2, along, true), Scalar(eps)));
  };
  return aten::sum(aten::mul(unit(both[0]), unit(both[1])), along);
}

}  // namespace treadle::composite
