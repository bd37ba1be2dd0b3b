// Shape rules of operators that order the elements along a dimension, or search in such an order.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_searchsorted.h"
#include "aten/ops/_sort_values.h"
#include "aten/ops/argmax.h"
#include "aten/ops/cummax.h"
#include "aten/ops/kthvalue.h"
#include "aten/ops/max.h"
#include "aten/ops/topk.h"

namespace treadle::shape {

// The shape of self; `dim` is one of its dimensions.
TensorSpec along_dim(const char* op, const Tensor& self, int64_t dim);
// (values, indices)
std::array<TensorSpec, 2> sort(const char* op, const Tensor& self, int64_t dim);
std::array<TensorSpec, 2> topk(const char* op, const Tensor& self, int64_t k, int64_t dim);
// One element for each slice along `dim`, and its position: max.dim, median.dim, kthvalue.
std::array<TensorSpec, 2> select_one(const char* op, const Tensor& self, int64_t dim, bool keepdim);
std::array<TensorSpec, 2> kthvalue(const char* op, const Tensor& self, int64_t k, int64_t dim,
                                   bool keepdim);
TensorSpec argreduce(const char* op, const Tensor& self, std::optional<int64_t> dim, bool keepdim);
TensorSpec searchsorted(const char* op, const Tensor& sorted_sequence, const Tensor& self,
                        bool out_int32, bool right, std::optional<std::string_view> side,
                        const Tensor& sorter);

}  // namespace treadle::shape
