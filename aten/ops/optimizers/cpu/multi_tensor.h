// Multi-tensor steps: lists of tensors side by side. The tensors at index i of the lists have one
// shape, and a step reads and writes their elements together.
//
//   multi_tensor_apply({{self, true}, {grads, false}},
//                      [&](size_t index, char* const* memory, int64_t n) {
//     ... memory[0] and memory[1] hold n elements of self[index] and of grads[index] ...
//   });
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "core/tensor/tensor.h"

namespace treadle::cpu {

struct MultiTensorList {
  TensorList list;  // an empty one has no memory: its pointer is null
  bool written = false;
};

// The maximum number of lists in one call.
inline constexpr size_t kMaxTensorLists = 6;

using MultiTensorStep = std::function<void(size_t index, char* const* memory, int64_t n)>;

// Calls `step` for runs that together cover every element at every index once. The first list must
// not be empty. All tensors have one dtype, and those at one index have one shape. The runs are the
// same at any number of threads. Tensors that share memory give the same result as reading and then
// writing the tensors of one index after another. Everything that can fail is done before the first
// step.
void multi_tensor_apply(ArrayRef<MultiTensorList> lists, const MultiTensorStep& step);

}  // namespace treadle::cpu
