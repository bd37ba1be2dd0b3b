// Derivatives of operators that choose, write, join or order elements.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/indexing/gradients.h"

#include "aten/ops/_index_integer.h"
#include "aten/ops/_index_put_integer.h"
#include "aten/ops/_sparse_coo_tensor.h"
#include "aten/ops/arange.h"
#include "aten/ops/bincount.h"
#include "aten/ops/cat.h"
#include "aten/ops/conj.h"
#include "aten/ops/constant_pad_nd.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/div.h"
#include "aten/ops/embedding_dense_backward.h"
#include "aten/ops/eq.h"
#include "aten/ops/gather.h"
#include "aten/ops/index_add.h"
#include "aten/ops/index_select.h"
#include "aten/ops/indexing/gradients_products.h"
#include "aten/ops/indexing/index_geometry.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/mul.h"
#include "aten/ops/narrow.h"
#include "aten/ops/ne.h"
#include "aten/ops/new_zeros.h"
#include "aten/ops/nonzero.h"
#include "aten/ops/ones_like.h"
#include "aten/ops/reshape.h"
#include "aten/ops/scatter.h"
#include "aten/ops/scatter_add.h"
#include "aten/ops/split_with_sizes.h"
#include "aten/ops/stack.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/where.h"
#include "aten/ops/zeros_like.h"

namespace treadle::autograd {
namespace {

// Sums the dimensions that `sizes` was broadcast along.
Tensor summed_to(const Tensor& t, IntList sizes) {
  const int64_t lead = t.dim() - static_cast<int64_t>(sizes.size());
  DimVector dims;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (d < lead || (sizes[d - lead] == 1 && t.size(d) != 1)) dims.push_back(d);
  }
  return dims.empty() ? t : aten::reshape(aten::sum(t, OptionalIntList(dims), true), sizes);
}

Tensor as_dtype_of(const Tensor& condition, const Tensor& t) {
  return aten::to(condition, t.dtype());
}

// The gradients, with zeros of the sizes `sizes_of(i)` for missing ones.
template <class F>
std::vector<Tensor> with_zeros(TensorList grads, F&& sizes_of) {
  std::vector<Tensor> all(grads.begin(), grads.end());
  const Tensor& like = *std::ranges::find_if(all, &Tensor::defined);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].defined()) all[i] = aten::new_zeros(like, sizes_of(static_cast<int64_t>(i)));
  }
  return all;
}

// The number of elements in each mean.
Tensor mean_counts(const Tensor& grad, int64_t dim, const Tensor& index, const Tensor& src,
                   bool include_self) {
  const Tensor start = include_self ? aten::ones_like(grad) : aten::zeros_like(grad);
  const Tensor counts = aten::scatter_add(start, dim, index, aten::ones_like(src));
  return aten::masked_fill(counts, aten::eq(counts, 0), 1);
}

// amax, amin: the gradient of each result, shared out among the elements that are it.
Tensor shared_among_equals(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                           const Tensor& src, bool include_self, const Tensor& result) {
  Tensor own = as_dtype_of(aten::eq(self, result), grad);
  if (!include_self) own = aten::scatter(own, dim, index, 0);
  const Tensor equal = as_dtype_of(aten::eq(src, aten::gather(result, dim, index)), grad);
  const Tensor counts = aten::scatter_add(own, dim, index, equal);
  return aten::div(grad, aten::masked_fill(counts, aten::eq(counts, 0), 1));
}

// The parts of the products that scatter forms.
ProductParts product_parts(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                           bool include_self) {
  const Tensor own = include_self ? self : aten::scatter(self, dim, index, 1);
  const Tensor own_zero = aten::eq(own, 0), src_zero = aten::eq(src, 0);
  const auto added = [&](const Tensor& to, const Tensor& from) {
    return aten::scatter_add(to, dim, index, from);
  };
  return {added(as_dtype_of(own_zero, self), as_dtype_of(src_zero, src)),
          added(aten::where(own_zero, own, Scalar(0)), aten::where(src_zero, src, Scalar(0))),
          aten::scatter(aten::masked_fill(own, own_zero, 1), dim, index,
                        aten::masked_fill(src, src_zero, 1), "multiply")};
}

// 0, 1, 2, ... in a tensor of such sizes.
Tensor numbered(IntList sizes, const Tensor& like) {
  return aten::reshape(
      aten::arange(checked_numel(sizes), ScalarType::Int64, std::nullopt, like.device()), sizes);
}

// If one element is written several times, the last value stays, and the others get no gradient.
// These find the others by writing the number of each write and looking which is there.
Tensor overwritten_by_index(const Tensor& grad, TensorList indices) {
  const shape::IndexGeometry g = shape::index_geometry("index_put", grad, indices);
  std::vector<Tensor> own;
  DimVector sizes;
  for (const int64_t d : g.indexed_dims) {
    own.push_back(indices[d]);
    sizes.push_back(grad.size(d));
  }
  const Tensor order = numbered(g.index_sizes, grad);
  const Tensor written =
      aten::_index_put_integer_(aten::new_zeros(order, sizes), own, order, false);
  DimVector broadcast(g.before_dims.size(), 1);
  for (const int64_t size : g.index_sizes) broadcast.push_back(size);
  for (size_t i = 0; i < g.after_dims.size(); ++i) broadcast.push_back(1);
  return aten::reshape(aten::ne(aten::_index_integer(written, own), order), broadcast);
}
Tensor overwritten_by_scatter(const Tensor& grad, int64_t dim, const Tensor& index) {
  const Tensor order = numbered(index.sizes(), grad);
  const Tensor written = aten::scatter_(aten::new_zeros(order, grad.sizes()), dim, index, order);
  return aten::ne(aten::gather(written, dim, index), order);
}

// The part of `src` that `index` covers.
Tensor covered_by(const Tensor& src, IntList sizes) {
  Tensor part = src;
  if (part.sizes() == sizes || part.sizes().size() != sizes.size()) return part;
  for (size_t d = 0; d < sizes.size(); ++d)
    part = aten::narrow(part, static_cast<int64_t>(d), 0, sizes[d]);
  return part;
}

// The part of a larger `src` outside `index` does not enter the result.
Tensor padded_to(const Tensor& inside, IntList sizes) {
  if (inside.sizes() == sizes) return inside;
  if (inside.sizes().size() != sizes.size())
    return aten::reshape(inside, sizes);  // 0-dim and 1-dim
  DimVector padding;
  for (size_t d = sizes.size(); d-- > 0;) {
    padding.push_back(0);
    padding.push_back(sizes[d] - inside.sizes()[d]);
  }
  return aten::constant_pad_nd(inside, padding);
}

// The gradient of the factors of scattered products.
Tensor product_src_backward(const Tensor& grad, const Tensor& self, int64_t dim,
                            const Tensor& index, const Tensor& src, bool include_self) {
  const Tensor part = covered_by(src, index.sizes());
  const ProductParts parts = product_parts(self, dim, index, part, include_self);
  const auto of_factors = [&](const Tensor& t) { return aten::gather(t, dim, index); };
  const Tensor others = product_without(
      part, {of_factors(parts.zeros), of_factors(parts.sum), of_factors(parts.product)});
  return padded_to(aten::mul(aten::gather(grad, dim, index), aten::conj(others)), src.sizes());
}

}  // namespace

Tensor index_backward(const Tensor& grad, IntList sizes, TensorList indices) {
  return aten::_index_put_integer_(aten::new_zeros(grad, sizes), indices, grad, true);
}

Tensor index_put_self_backward(const Tensor& grad, TensorList indices, bool accumulate) {
  return accumulate ? grad
                    : aten::_index_put_integer(grad, indices, aten::new_zeros(grad, {}), false);
}

Tensor index_put_values_backward(const Tensor& grad, TensorList indices, IntList sizes,
                                 bool accumulate) {
  Tensor values = aten::_index_integer(grad, indices);
  if (!accumulate && values.numel() > 0)
    values = aten::masked_fill(values, overwritten_by_index(grad, indices), 0);
  return summed_to(values, sizes);
}

Tensor split_backward(TensorList grads, IntList sizes, int64_t split_size, int64_t dim) {
  const int64_t d = wrap_dim("split", dim, static_cast<int64_t>(sizes.size()));
  DimVector lengths(grads.size(), split_size);
  lengths.back() = sizes[d] - split_size * (static_cast<int64_t>(grads.size()) - 1);
  return split_with_sizes_backward(grads, sizes, lengths, d);
}

Tensor split_with_sizes_backward(TensorList grads, IntList sizes, IntList split_sizes,
                                 int64_t dim) {
  const int64_t d = wrap_dim("split_with_sizes", dim, static_cast<int64_t>(sizes.size()));
  DimVector piece(sizes);
  return aten::cat(with_zeros(grads,
                              [&](int64_t i) -> IntList {
                                piece[d] = split_sizes[i];
                                return piece;
                              }),
                   d);
}

Tensor unbind_backward(TensorList grads, IntList sizes, int64_t dim) {
  const int64_t d = wrap_dim("unbind", dim, static_cast<int64_t>(sizes.size()));
  DimVector slice;
  for (size_t k = 0; k < sizes.size(); ++k) {
    if (static_cast<int64_t>(k) != d) slice.push_back(sizes[k]);
  }
  return aten::stack(with_zeros(grads, [&](int64_t) -> IntList { return slice; }), d);
}

Tensor index_select_backward(const Tensor& grad, IntList sizes, int64_t dim, const Tensor& index) {
  return aten::index_add_(aten::new_zeros(grad, sizes), dim, index, grad);
}

Tensor index_copy_source_backward(const Tensor& grad, IntList sizes, int64_t dim,
                                  const Tensor& index) {
  if (grad.dim() == 0) return aten::reshape(grad, sizes);
  if (dim < 0) dim += grad.dim();
  std::vector<Tensor> indices(static_cast<size_t>(dim) + 1);
  indices[dim] = aten::reshape(index, {-1});
  DimVector written(grad.sizes());
  written[dim] = index.numel();
  return aten::reshape(index_put_values_backward(grad, indices, written, false), sizes);
}

Tensor index_add_source_backward(const Tensor& grad, IntList sizes, int64_t dim,
                                 const Tensor& index, const Scalar& alpha) {
  return aten::mul(aten::reshape(aten::index_select(grad, dim, index), sizes), alpha.conj());
}

Tensor gather_backward(const Tensor& grad, IntList sizes, int64_t dim, const Tensor& index) {
  return index.numel() == 0 ? aten::new_zeros(grad, sizes)
                            : aten::scatter_add_(aten::new_zeros(grad, sizes), dim, index, grad);
}

Tensor scatter_add_src_backward(const Tensor& grad, IntList sizes, int64_t dim,
                                const Tensor& index) {
  return index.numel() == 0 ? aten::new_zeros(grad, sizes)
                            : padded_to(aten::gather(grad, dim, index), sizes);
}

Tensor scatter_src_backward(const Tensor& grad, IntList sizes, int64_t dim, const Tensor& index) {
  if (index.numel() == 0) return aten::new_zeros(grad, sizes);
  const Tensor inside = aten::gather(grad, dim, index);
  return padded_to(aten::masked_fill(inside, overwritten_by_scatter(grad, dim, index), 0), sizes);
}

Tensor scatter_reduce_self_backward(const Tensor& grad, const Tensor& self, int64_t dim,
                                    const Tensor& index, const Tensor& src,
                                    std::string_view reduce) {
  if (reduce == "add" || index.numel() == 0) return grad;
  const Tensor part = covered_by(src, index.sizes());
  const ProductParts parts = product_parts(self, dim, index, part, true);
  return aten::mul(grad, aten::conj(product_without(self, parts)));
}

Tensor scatter_reduce_src_backward(const Tensor& grad, const Tensor& self, int64_t dim,
                                   const Tensor& index, const Tensor& src,
                                   std::string_view reduce) {
  if (reduce == "add" || index.numel() == 0)
    return scatter_add_src_backward(grad, src.sizes(), dim, index);
  return product_src_backward(grad, self, dim, index, src, true);
}

Tensor scatter_value_reduce_backward(const Tensor& grad, int64_t dim, const Tensor& index,
                                     const Scalar& value, std::string_view reduce) {
  if (reduce == "add") return grad;
  return aten::mul(grad,
                   aten::scatter(aten::ones_like(grad), dim, index, value.conj(), "multiply"));
}

Tensor scatter_reduce_two_self_backward(const Tensor& grad, const Tensor& self, int64_t dim,
                                        const Tensor& index, const Tensor& src,
                                        std::string_view reduce, bool include_self,
                                        const Tensor& result) {
  if (index.numel() == 0) return grad;
  if (!include_self) return aten::scatter(grad, dim, index, 0);
  if (reduce == "sum") return grad;
  const Tensor part = covered_by(src, index.sizes());
  if (reduce == "mean") return aten::div(grad, mean_counts(grad, dim, index, part, true));
  if (reduce == "prod") {
    const ProductParts parts = product_parts(self, dim, index, part, true);
    return aten::mul(grad, aten::conj(product_without(self, parts)));
  }
  const Tensor share = shared_among_equals(grad, self, dim, index, part, true, result);
  return aten::mul(as_dtype_of(aten::eq(self, result), grad), share);
}

Tensor scatter_reduce_two_src_backward(const Tensor& grad, const Tensor& self, int64_t dim,
                                       const Tensor& index, const Tensor& src,
                                       std::string_view reduce, bool include_self,
                                       const Tensor& result) {
  if (index.numel() == 0) return aten::zeros_like(src);
  if (reduce == "sum") return scatter_add_src_backward(grad, src.sizes(), dim, index);
  if (reduce == "prod") return product_src_backward(grad, self, dim, index, src, include_self);
  const Tensor part = covered_by(src, index.sizes());
  if (reduce == "mean") {
    const Tensor means = aten::div(grad, mean_counts(grad, dim, index, part, include_self));
    return padded_to(aten::gather(means, dim, index), src.sizes());
  }
  const Tensor share = shared_among_equals(grad, self, dim, index, part, include_self, result);
  const Tensor chosen = as_dtype_of(aten::eq(part, aten::gather(result, dim, index)), grad);
  return padded_to(aten::mul(chosen, aten::gather(share, dim, index)), src.sizes());
}

Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights,
                          int64_t padding_idx, bool scale_grad_by_freq, bool sparse) {
  if (!sparse) {
    return aten::embedding_dense_backward(grad, indices, num_weights, padding_idx,
                                          scale_grad_by_freq);
  }
  check<ErrorKind::NotImplemented>(!scale_grad_by_freq, OpName("embedding"),
                                   "expected scale_grad_by_freq = False for a sparse gradient, got "
                                   "True");
  const int64_t width = grad.size(-1);
  Tensor rows = aten::reshape(aten::to(indices, ScalarType::Int64), {-1});
  Tensor values = aten::contiguous(aten::reshape(grad, {rows.numel(), width}));
  if (padding_idx >= 0) {
    const Tensor kept = aten::reshape(aten::nonzero(aten::ne(rows, Scalar(padding_idx))), {-1});
    rows = aten::index_select(rows, 0, kept);
    values = aten::index_select(values, 0, kept);
  }
  return aten::_sparse_coo_tensor(aten::unsqueeze(rows, 0), values, {num_weights, width}, false);
}

Tensor embedding_double_backward(const Tensor& grad, const Tensor& indices, int64_t padding_idx,
                                 bool scale_grad_by_freq) {
  const Tensor flat = aten::reshape(indices, {-1});
  Tensor rows = aten::index_select(grad, 0, flat);
  if (scale_grad_by_freq) {
    const Tensor counts = aten::index_select(aten::bincount(flat, {}, grad.size(0)), 0, flat);
    rows = aten::div(rows, aten::unsqueeze(aten::to(counts, grad.dtype()), 1));
  }
  if (padding_idx >= 0)
    rows = aten::masked_fill(rows, aten::unsqueeze(aten::eq(flat, padding_idx), 1), 0);
  DimVector sizes(indices.sizes());
  sizes.push_back(grad.size(1));
  return aten::reshape(rows, sizes);
}

std::vector<Tensor> cat_backward(const Tensor& grad, int64_t dim, IntList lengths) {
  return aten::split_with_sizes(grad, lengths, dim);
}

Tensor sort_backward(const Tensor& grad, IntList sizes, int64_t dim, const Tensor& indices) {
  return indices.numel() == 0 ? aten::new_zeros(grad, sizes)
                              : aten::scatter_(aten::new_zeros(grad, sizes), dim, indices, grad);
}

Tensor select_one_backward(const Tensor& grad, IntList sizes, int64_t dim, const Tensor& indices,
                           bool keepdim) {
  if (keepdim || sizes.empty()) return sort_backward(grad, sizes, dim, indices);
  if (dim < 0) dim += static_cast<int64_t>(sizes.size());
  return sort_backward(aten::unsqueeze(grad, dim), sizes, dim, aten::unsqueeze(indices, dim));
}

}  // namespace treadle::autograd
