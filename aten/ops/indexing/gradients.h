// Derivatives of operators that choose, write, join or order elements. Each formula is made of
// operators, so that it can be differentiated again.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// index: gradients of reads from one element are added up there.
Tensor index_backward(const Tensor& grad, IntList sizes, TensorList indices);
Tensor index_put_self_backward(const Tensor& grad, TensorList indices, bool accumulate);
// Among several values for one element, only the last one, which stays, gets a gradient.
Tensor index_put_values_backward(const Tensor& grad, TensorList indices, IntList sizes,
                                 bool accumulate);

// Views of pieces that fill a tensor of `sizes`: their gradients are joined.
Tensor split_backward(TensorList grads, IntList sizes, int64_t split_size, int64_t dim);
Tensor split_with_sizes_backward(TensorList grads, IntList sizes, IntList split_sizes, int64_t dim);
Tensor unbind_backward(TensorList grads, IntList sizes, int64_t dim);

Tensor index_select_backward(const Tensor& grad, IntList sizes, int64_t dim, const Tensor& index);
Tensor index_copy_source_backward(const Tensor& grad, IntList sizes, int64_t dim,
                                  const Tensor& index);
Tensor index_add_source_backward(const Tensor& grad, IntList sizes, int64_t dim,
                                 const Tensor& index, const Scalar& alpha);

Tensor gather_backward(const Tensor& grad, IntList sizes, int64_t dim, const Tensor& index);
// `src` may be larger than `index`.
Tensor scatter_add_src_backward(const Tensor& grad, IntList sizes, int64_t dim,
                                const Tensor& index);
Tensor scatter_src_backward(const Tensor& grad, IntList sizes, int64_t dim, const Tensor& index);
Tensor scatter_reduce_self_backward(const Tensor& grad, const Tensor& self, int64_t dim,
                                    const Tensor& index, const Tensor& src,
                                    std::string_view reduce);
Tensor scatter_reduce_src_backward(const Tensor& grad, const Tensor& self, int64_t dim,
                                   const Tensor& index, const Tensor& src, std::string_view reduce);
Tensor scatter_value_reduce_backward(const Tensor& grad, int64_t dim, const Tensor& index,
                                     const Scalar& value, std::string_view reduce);
Tensor scatter_reduce_two_self_backward(const Tensor& grad, const Tensor& self, int64_t dim,
                                        const Tensor& index, const Tensor& src,
                                        std::string_view reduce, bool include_self,
                                        const Tensor& result);
Tensor scatter_reduce_two_src_backward(const Tensor& grad, const Tensor& self, int64_t dim,
                                       const Tensor& index, const Tensor& src,
                                       std::string_view reduce, bool include_self,
                                       const Tensor& result);

// The gradient of embedding by its weight. `sparse` makes it a sparse_coo tensor with a row for
// each index.
Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights,
                          int64_t padding_idx, bool scale_grad_by_freq, bool sparse);
Tensor embedding_double_backward(const Tensor& grad, const Tensor& indices, int64_t padding_idx,
                                 bool scale_grad_by_freq);

std::vector<Tensor> cat_backward(const Tensor& grad, int64_t dim, IntList lengths);

// sort, topk: `indices` gives the position along `dim` of each element of the result.
Tensor sort_backward(const Tensor& grad, IntList sizes, int64_t dim, const Tensor& indices);
// max, median, kthvalue along `dim`.
Tensor select_one_backward(const Tensor& grad, IntList sizes, int64_t dim, const Tensor& indices,
                           bool keepdim);

}  // namespace treadle::autograd
