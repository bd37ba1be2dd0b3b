// Shape rules of reindex and reindex_reduce, whose indices are expressions.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/reindex.h"
#include "aten/ops/reindex_reduce.h"

namespace treadle::shape {

TensorSpec reindex(const char* op, const Tensor& self, IntList shape, std::string_view indices);
TensorSpec reindex_reduce(const char* op, const Tensor& self, std::string_view how, IntList shape,
                          std::string_view indices);

}  // namespace treadle::shape
