// Multi-tensor steps: lists of tensors side by side. The tensors at index i of the lists have one
// shape, and a step reads and writes their elements together.
//
//   multi_tensor_apply({{self, true}, {grads, false}}, [&](size_t place, char* const* memory, int64_t n) {
//     ... memory[0] and memory[1] hold n elements of self[place] and of grads[place] ...
//   });
#pragma once

#include <functional>

#include "core/tensor/tensor.h"

namespace treadle::cpu {

struct MultiTensorList {
  TensorList list;  // an empty one has no memory: its pointer is null
  bool written = false;
};

// The most lists that are walked at once.
inline constexpr size_t kMaxTensorLists = 6;

using MultiTensorStep = std::function<void(size_t place, char* const* memory, int64_t n)>;

// Calls `step` for runs that together hold every element of every place once. The first list is
// not empty; all tensors have one dtype, and those at one place one shape. Runs are the same at any
// number of threads. Tensors that share memory are worked through as if each place were read whole
// and then written, one place after another. What can fail has failed before the first step.
void multi_tensor_apply(ArrayRef<MultiTensorList> sides, const MultiTensorStep& step);

}  // namespace treadle::cpu
