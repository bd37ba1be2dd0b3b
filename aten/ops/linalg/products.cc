// Products of vectors, matrices and tensors beyond matmul.
//
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "aten/ops/add.h"
#include "aten/ops/addbmm.h"
#include "aten/ops/addmv.h"
#include "aten/ops/addr.h"
#include "aten/ops/bmm.h"
#include "aten/ops/cat.h"
#include "aten/ops/chain_matmul.h"
#include "aten/ops/clone.h"
#include "aten/ops/conj.h"
#include "aten/ops/copy_.h"
#include "aten/ops/cross.h"
#include "aten/ops/cumprod.h"
#include "aten/ops/diagonal.h"
#include "aten/ops/dot.h"
#include "aten/ops/expand.h"
#include "aten/ops/eye.h"
#include "aten/ops/inner.h"
#include "aten/ops/kron.h"
#include "aten/ops/linalg/shape.h"
#include "aten/ops/linalg_cross.h"
#include "aten/ops/linalg_diagonal.h"
#include "aten/ops/linalg_inv.h"
#include "aten/ops/linalg_matrix_exp.h"
#include "aten/ops/linalg_matrix_power.h"
#include "aten/ops/linalg_multi_dot.h"
#include "aten/ops/linalg_vander.h"
#include "aten/ops/linalg_vecdot.h"
#include "aten/ops/matmul.h"
#include "aten/ops/matrix_exp.h"
#include "aten/ops/mm.h"
#include "aten/ops/mul.h"
#include "aten/ops/mv.h"
#include "aten/ops/ones.h"
#include "aten/ops/outer.h"
#include "aten/ops/permute.h"
#include "aten/ops/reshape.h"
#include "aten/ops/roll.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/tensordot.h"
#include "aten/ops/to.h"
#include "aten/ops/trace.h"
#include "aten/ops/transpose.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/vdot.h"

namespace treadle::composite {
namespace {

void one_dtype(const char* op, const Tensor& a, const Tensor& b) {
  check<ErrorKind::Runtime>(a.dtype() == b.dtype(), OpName(op),
                            "expected two tensors of one dtype, got ", a.dtype(), " and ",
                            b.dtype());
}

// beta * self + alpha * product, where a self times 0 is not looked at.
Tensor added(const char* op, const Tensor& self, const Tensor& product, Scalar beta, Scalar alpha) {
  one_dtype(op, self, product);
  visit_type(AllTypes(), product.dtype(), [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {  // without their fractions
      alpha = Scalar(alpha.checked_to<T>(op));
      beta = Scalar(beta.checked_to<T>(op));
    } else {
      static_cast<void>(alpha.checked_to<T>(op));
      static_cast<void>(beta.checked_to<T>(op));
    }
  });
  bool fits = self.dim() <= product.dim();
  for (int64_t d = 1; fits && d <= self.dim(); ++d)
    fits = self.size(-d) == 1 || self.size(-d) == product.size(-d);
  check<ErrorKind::Runtime>(fits, OpName(op), "expected self to broadcast to ", product.sizes(),
                            ", got shape ", self.sizes());
  const bool truth = product.dtype() == ScalarType::Bool;  // numbers do not lift it to integers
  const Scalar factor = truth ? Scalar(alpha.to<bool>()) : alpha;
  const Tensor scaled = alpha.equal(1) ? product : aten::mul(product, factor);
  if (beta.equal(0)) return scaled;
  return aten::add(scaled, self, truth ? Scalar(true) : beta);
}

// The cheapest order of a chain of matrices: entry (i, j) says behind which matrix the product of
// i ... j is split.
class ChainOrder {
 public:
  explicit ChainOrder(const std::vector<Tensor>& matrices) : count_(matrices.size()) {
    std::vector<double> size;
    for (const Tensor& m : matrices) size.push_back(static_cast<double>(m.size(0)));
    size.push_back(static_cast<double>(matrices.back().size(1)));
    std::vector<double> cost(count_ * count_, 0);
    splits_.resize(count_ * count_);
    for (size_t length = 2; length <= count_; ++length) {
      for (size_t i = 0; i + length <= count_; ++i) {
        const size_t j = i + length - 1;
        double best = std::numeric_limits<double>::infinity();
        for (size_t k = i; k < j; ++k) {
          const double c = cost[i * count_ + k] + cost[(k + 1) * count_ + j] +
                           size[i] * size[k + 1] * size[j + 1];
          if (c >= best) continue;
          best = c;
          splits_[i * count_ + j] = k;
        }
        cost[i * count_ + j] = best;
      }
    }
  }
  Tensor multiply(const std::vector<Tensor>& matrices, size_t i, size_t j) const {
    if (i == j) return matrices[i];
    const size_t k = splits_[i * count_ + j];
    return aten::mm(multiply(matrices, i, k), multiply(matrices, k + 1, j));
  }

 private:
  size_t count_;
  std::vector<size_t> splits_;
};

// The product of arguments that were checked to be matrices.
Tensor chain(const char* op, const std::vector<Tensor>& matrices) {
  // The order is found in time that grows with the cube of the number of matrices.
  check<ErrorKind::Runtime>(matrices.size() <= 1000, OpName(op),
                            "expected at most 1000 matrices, got ", matrices.size());
  for (size_t i = 0; i < matrices.size(); ++i) {
    check<ErrorKind::Runtime>(matrices[i].dim() == 2, OpName(op),
                              "expected matrices, got one with shape ", matrices[i].sizes());
    if (i == 0) continue;
    one_dtype(op, matrices[i - 1], matrices[i]);
    check<ErrorKind::Runtime>(matrices[i - 1].size(1) == matrices[i].size(0), OpName(op),
                              "expected shapes that multiply, got ", matrices[i - 1].sizes(),
                              " and ", matrices[i].sizes());
  }
  return ChainOrder(matrices).multiply(matrices, 0, matrices.size() - 1);
}

}  // namespace

Tensor linalg_diagonal(const Tensor& a, int64_t offset, int64_t dim1, int64_t dim2) {
  return aten::diagonal(a, offset, dim1, dim2);
}

Tensor trace(const Tensor& self) { return aten::sum(aten::diagonal(self, 0, 0, 1)); }

Tensor matrix_exp(const Tensor& self) {
  const bool narrow = is_floating(self.dtype()) && item_size(self.dtype()) == 2;
  if (!narrow) return aten::linalg_matrix_exp(self);
  return aten::to(aten::linalg_matrix_exp(aten::to(self, ScalarType::Float32)), self.dtype());
}

Tensor linalg_matrix_power(const Tensor& self, int64_t n) {
  shape::require_square("linalg.matrix_power", self);
  if (n == 0) {
    const Tensor unit = aten::eye(self.size(-1), self.dtype(), std::nullopt, self.device());
    return aten::copy_(aten::clone(self), unit);  // whose gradient is zero
  }
  Tensor square = n < 0 ? aten::linalg_inv(self) : self, result;
  // The magnitude of the least integer is no integer.
  for (uint64_t rest = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n); rest > 0;) {
    if (rest & 1) result = result.defined() ? aten::matmul(result, square) : square;
    rest >>= 1;
    if (rest > 0) square = aten::matmul(square, square);
  }
  return result.is_same(self) ? aten::clone(self) : result;
}

Tensor linalg_vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  one_dtype("linalg.vecdot", x, y);
  return aten::sum(aten::mul(aten::conj(x), y), OptionalIntList(IntList(&dim, 1)));
}

Tensor vdot(const Tensor& self, const Tensor& other) {
  for (const Tensor& t : {self, other}) {
    check<ErrorKind::Runtime>(t.dim() == 1, OpName("vdot"), "expected vectors, got shapes ",
                              self.sizes(), " and ", other.sizes());
  }
  one_dtype("vdot", self, other);
  check<ErrorKind::Runtime>(self.numel() == other.numel(), OpName("vdot"),
                            "expected vectors of one length, got ", self.numel(), " and ",
                            other.numel());
  return aten::dot(aten::conj(self), other);
}

Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return aten::mul(self, other);
  one_dtype("inner", self, other);
  check<ErrorKind::Runtime>(self.size(-1) == other.size(-1), OpName("inner"),
                            "expected last dimensions of one size, got shapes ", self.sizes(),
                            " and ", other.sizes());
  return aten::tensordot(self, other, {-1}, {-1});
}

Tensor linalg_multi_dot(TensorList tensors) {
  const char* const op = "linalg.multi_dot";
  check<ErrorKind::Runtime>(tensors.size() >= 2, OpName(op), "expected at least 2 tensors, got ",
                            tensors.size());
  std::vector<Tensor> matrices(tensors.begin(), tensors.end());
  const bool row = matrices.front().dim() == 1, column = matrices.back().dim() == 1;
  if (row) matrices.front() = aten::unsqueeze(matrices.front(), 0);
  if (column) matrices.back() = aten::unsqueeze(matrices.back(), 1);
  Tensor result = chain(op, matrices);
  if (row) result = aten::squeeze(result, 0);
  return column ? aten::squeeze(result, -1) : result;
}

Tensor chain_matmul(TensorList matrices) {
  check<ErrorKind::Runtime>(!matrices.empty(), OpName("chain_matmul"),
                            "expected at least 1 matrix, got 0");
  const Tensor result =
      chain("chain_matmul", std::vector<Tensor>(matrices.begin(), matrices.end()));
  return matrices.size() == 1 ? aten::clone(result) : result;
}

Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim) {
  const char* const op = "linalg.cross";
  check<ErrorKind::Runtime>(self.dim() == other.dim() && self.dim() > 0, OpName(op),
                            "expected tensors with the same number of dimensions, at least 1, "
                            "got shapes ",
                            self.sizes(), " and ", other.sizes());
  const int64_t d = wrap_dim(op, dim, self.dim());
  check<ErrorKind::Runtime>(self.size(d) == 3 && other.size(d) == 3, OpName(op),
                            "expected size 3 along dimension ", d, ", got shapes ", self.sizes(),
                            " and ", other.sizes());
  const auto turned = [&](const Tensor& t, int64_t by) { return aten::roll(t, {by}, {d}); };
  return aten::sub(aten::mul(turned(self, -1), turned(other, -2)),
                   aten::mul(turned(self, -2), turned(other, -1)));
}

Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  if (dim) return aten::linalg_cross(self, other, *dim);
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.size(d) == 3) return aten::linalg_cross(self, other, d);
  }
  fail<ErrorKind::Runtime>(OpName("cross"), "expected a dimension of size 3, got shape ",
                           self.sizes());
}

Tensor linalg_vander(const Tensor& self, std::optional<int64_t> n) {
  const char* const op = "linalg.vander";
  const Tensor x = self.dim() == 0 ? aten::unsqueeze(self, 0) : self;
  check<ErrorKind::Runtime>(!n || *n >= 1, OpName(op), "expected N > 0, got N = ", n);
  const int64_t columns = n.value_or(x.size(-1));
  DimVector sizes(x.sizes());
  sizes.push_back(columns > 0 ? columns - 1 : 0);
  const Tensor powers = aten::cumprod(aten::expand(aten::unsqueeze(x, -1), sizes), -1);
  sizes.back() = columns > 0 ? 1 : 0;
  const Tensor ones = aten::ones(sizes, powers.dtype(), std::nullopt, x.device());
  return aten::cat({ones, powers}, -1);
}

Tensor tensordot(const Tensor& self, const Tensor& other, IntList dims_self, IntList dims_other) {
  const char* const op = "tensordot";
  check<ErrorKind::Runtime>(dims_self.size() == dims_other.size(), OpName(op),
                            "expected as many dimensions of self as of other, got ", dims_self,
                            " and ", dims_other);
  one_dtype(op, self, other);
  DimVector a = wrap_dims(op, OptionalIntList(dims_self), self.dim(), false);
  DimVector b = wrap_dims(op, OptionalIntList(dims_other), other.dim(), false);
  Tensor x = self, y = other;
  // Dimensions of size 1 broadcast: the other side is summed first.
  for (size_t i = 0; i < a.size(); ++i) {
    const int64_t m = self.dim() == 0 ? 1 : x.size(a[i]), n = other.dim() == 0 ? 1 : y.size(b[i]);
    check<ErrorKind::Runtime>(m == n || m == 1 || n == 1, OpName(op),
                              "expected the paired dimensions of one size, got shapes ",
                              self.sizes(), " and ", other.sizes(), " for ", dims_self, " and ",
                              dims_other);
    if (m == n) continue;
    if (m == 1)
      y = aten::sum(y, OptionalIntList(IntList(b.data() + i, 1)), true, y.dtype());
    else
      x = aten::sum(x, OptionalIntList(IntList(a.data() + i, 1)), true, x.dtype());
  }
  if (x.dim() == 0 || y.dim() == 0) return aten::mul(x, y);
  const auto contains = [](const DimVector& list, int64_t d) {
    return std::find(list.begin(), list.end(), d) != list.end();
  };
  DimVector order_x, order_y(b), sizes;
  int64_t rows = 1, columns = 1, inner = 1;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (contains(a, d)) continue;
    order_x.push_back(d);
    sizes.push_back(x.size(d));
    rows *= x.size(d);
  }
  for (const int64_t d : a) {
    order_x.push_back(d);
    inner *= x.size(d);
  }
  for (int64_t d = 0; d < y.dim(); ++d) {
    if (contains(b, d)) continue;
    order_y.push_back(d);
    sizes.push_back(y.size(d));
    columns *= y.size(d);
  }
  checked_numel(sizes);
  return aten::reshape(aten::mm(aten::reshape(aten::permute(x, order_x), {rows, inner}),
                                aten::reshape(aten::permute(y, order_y), {inner, columns})),
                       sizes);
}

Tensor kron(const Tensor& self, const Tensor& other) {
  const int64_t rank = std::max(self.dim(), other.dim());
  DimVector wide_a, wide_b, sizes;
  for (int64_t d = 0; d < rank; ++d) {
    const auto size = [&](const Tensor& t) {
      const int64_t at = d - (rank - t.dim());
      return at < 0 ? 1 : t.sizes()[static_cast<size_t>(at)];
    };
    const int64_t m = size(self), n = size(other);
    for (const int64_t s : {m, int64_t{1}}) wide_a.push_back(s);
    for (const int64_t s : {int64_t{1}, n}) wide_b.push_back(s);
    sizes.push_back(checked_numel({m, n}));
  }
  checked_numel(sizes);
  return aten::reshape(aten::mul(aten::reshape(self, wide_a), aten::reshape(other, wide_b)), sizes);
}

Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
             const Scalar& alpha) {
  check<ErrorKind::Runtime>(mat.dim() == 2 && vec.dim() == 1 && mat.size(1) == vec.numel(),
                            OpName("addmv"),
                            "expected a matrix and a vector that multiply, got shapes ",
                            mat.sizes(), " and ", vec.sizes());
  one_dtype("addmv", mat, vec);
  return added("addmv", self, aten::mv(mat, vec), beta, alpha);
}

Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
            const Scalar& alpha) {
  check<ErrorKind::Runtime>(vec1.dim() == 1 && vec2.dim() == 1, OpName("addr"),
                            "expected two vectors, got shapes ", vec1.sizes(), " and ",
                            vec2.sizes());
  one_dtype("addr", vec1, vec2);
  return added("addr", self, aten::outer(vec1, vec2), beta, alpha);
}

Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
              const Scalar& alpha) {
  check<ErrorKind::Runtime>(
      batch1.dim() == 3 && batch2.dim() == 3 && batch1.size(0) == batch2.size(0) &&
          batch1.size(2) == batch2.size(1),
      OpName("addbmm"), "expected batches of matrices that multiply, got shapes ", batch1.sizes(),
      " and ", batch2.sizes());
  one_dtype("addbmm", batch1, batch2);
  // The sum over the batch is part of the product of long matrices.
  const int64_t inner = checked_numel({batch1.size(0), batch1.size(2)});
  const Tensor wide = aten::reshape(aten::permute(batch1, {1, 0, 2}), {batch1.size(1), inner});
  const Tensor tall = aten::reshape(batch2, {inner, batch2.size(2)});
  return added("addbmm", self, aten::mm(wide, tall), beta, alpha);
}

}  // namespace treadle::composite
