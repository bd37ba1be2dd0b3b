// The checks that generated operators on lists (`foreach:` of an entry) make before they run, so
// that a refused call has written nothing.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/base/array_ref.h"
#include "core/base/scalar.h"
#include "core/tensor/tensor.h"

namespace treadle::foreach {

struct NamedLength {
  const char* name;
  size_t length;
};
// The length that all lists have; RuntimeError where they are empty or two differ.
size_t length(const char* op, ArrayRef<NamedLength> lists);

// RuntimeError unless the tensor has no dimensions.
void require_number(const char* op, const char* name, const Tensor& tensor);

// The numbers that a tensor of one dimension holds, one for each place; RuntimeError where there
// are not as many.
std::vector<Scalar> numbers(const char* op, const char* name, const Tensor& tensor, size_t count);

// Refuses written tensors (the first list) that cannot be written, and devices that differ at a
// place; `shared` tensors stand at every place. True if the operator takes every place where it
// takes the first: tensors have the dtype and device of the first of their list, and one shape at
// each place; numbers are of one kind. Where it is false, each call is tried with on_meta() tensors
// first.
bool alike(const char* op, ArrayRef<TensorList> lists, ArrayRef<const Tensor*> shared,
           ArrayRef<Scalar> numbers = {});

// A tensor without data of the same shape and dtype.
Tensor on_meta(const Tensor& tensor);

}  // namespace treadle::foreach
