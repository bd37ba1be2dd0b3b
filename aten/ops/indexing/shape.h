// Shape rules of operators that read or write chosen elements: index, gather, scatter, embedding,
// flip and related ones.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_index_integer.h"
#include "aten/ops/_index_put_integer.h"
#include "aten/ops/embedding.h"
#include "aten/ops/embedding_dense_backward.h"
#include "aten/ops/flip.h"
#include "aten/ops/gather.h"
#include "aten/ops/index_add.h"
#include "aten/ops/index_fill.h"
#include "aten/ops/index_select.h"
#include "aten/ops/scatter.h"

namespace treadle::shape {

TensorSpec index_integer(const char* op, const Tensor& self, TensorList indices);
TensorSpec index_put_integer(const char* op, const Tensor& self, TensorList indices,
                             const Tensor& values);
TensorSpec index_select(const char* op, const Tensor& self, int64_t dim, const Tensor& index);
// index_add, index_copy: `source` has self's shape except for `dim`, where it has as many entries
// as `index`.
TensorSpec index_write(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                       const Tensor& source);
TensorSpec index_fill(const char* op, const Tensor& self, int64_t dim, const Tensor& index);
TensorSpec gather(const char* op, const Tensor& self, int64_t dim, const Tensor& index);
TensorSpec scatter(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                   const Tensor& src);
TensorSpec scatter_value(const char* op, const Tensor& self, int64_t dim, const Tensor& index);
TensorSpec embedding(const char* op, const Tensor& weight, const Tensor& indices);
TensorSpec embedding_dense_backward(const char* op, const Tensor& grad_output,
                                    const Tensor& indices, int64_t num_weights);
TensorSpec flip(const char* op, const Tensor& self, IntList dims);

}  // namespace treadle::shape
