// Views and in-place changes. A view remembers its base. An in-place change of either one rewrites
// the history of the base. The view's own node is rebuilt from the base at its next use.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "autograd/meta.h"

namespace treadle::autograd {

// Marks `view`, a new tensor over the storage of `self`, as a view of it (of its base, when `self`
// is a view). A view of an inference tensor is not marked.
Tensor as_view(const Tensor& self, Tensor view, ViewCreation creation = ViewCreation::Normal);
std::vector<Tensor> as_views(const Tensor& self, std::vector<Tensor> views);

// Raises RuntimeError when `op` may not change `self` in place. `recorded` says whether the change
// is to be recorded.
void check_in_place(const char* op, const Tensor& self, bool recorded);
inline void check_in_place(const char* op, TensorList written, bool recorded) {
  for (const Tensor& self : written) check_in_place(op, self, recorded);
}
// RuntimeError when `written` is an inference tensor and inference mode is off.
void require_mode(const char* op, const Tensor& written);
inline void require_mode(const char* op, TensorList written) {
  for (const Tensor& t : written) require_mode(op, t);
}
// Raises RuntimeError when an argument of an out= form requires grad.
[[noreturn]] void reject_out(const char* op);

// Makes `node`, which has recorded an in-place change, the grad_fn of `self`. Edge `edge` of the
// node leads to the history of `self` before the change; any other number means that no edge does.
void rebase_history(const Tensor& self, NodePtr node, size_t edge = 0);

// A node that takes the gradient of a view to its base.
NodePtr view_node(const Tensor& t, const ViewMeta& view);
// A node that splits the gradient of `base` after `node` changed its view `view` in place. Edge
// `self` of the node is the view's.
NodePtr copy_slices(const Tensor& base, const Tensor& view, NodePtr node, size_t self);

}  // namespace treadle::autograd
