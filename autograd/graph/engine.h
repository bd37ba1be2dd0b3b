// The engine traverses the graph from outputs to leaves, latest operator first.
//
//   backward({loss}, {}, false, false);             // adds to .grad of the leaves
//   auto g = grad({loss}, {w}, {}, false, true);    // returns d loss / d w, itself differentiable
//
// The traversal is a loop over a queue, so the depth of the graph does not matter. It runs in the
// calling thread. A node may call backward again. The order in which gradients are added depends on
// the graph only.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "autograd/graph/node.h"
#include "autograd/meta.h"

namespace treadle::autograd {

// `gradients` has one entry for each of `tensors`. An undefined one means ones, for a tensor with
// one element. An empty list means that all are undefined. With `inputs`, only their .grad (of
// leaves and non-leaves) is added to.
void backward(TensorList tensors, TensorList gradients = {}, bool retain_graph = false,
              bool create_graph = false, TensorList inputs = {});

// One gradient for each of `inputs`. It is undefined for an input that takes no part, which is an
// error unless `allow_unused`.
std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs = {},
                         bool retain_graph = false, bool create_graph = false,
                         bool allow_unused = false);

// The traversal itself: from `roots` with their gradients, to the edges in `captures` (empty: to
// the leaves).
struct WalkOptions {
  bool keep_graph = false;    // keep what nodes saved
  bool create_graph = false;  // record the traversal itself
  bool accumulate = false;    // with captures: run the nodes that accumulate into captured leaves,
                              // instead of capturing
};
std::vector<Tensor> run_backward(ArrayRef<Edge> roots, Grads gradients, ArrayRef<Edge> captures,
                                 WalkOptions options);

// Makes `grad` fit its tensor: converts the dtype and, where `broadcasts`, sums over the broadcast
// dimensions. RuntimeError "op: part number: expected ..." when the shapes do not fit.
Tensor fit_gradient(const InputMetadata& expected, Tensor grad, bool broadcasts,
                    std::string_view op, const char* part, size_t number);

// The id of the backward that runs on this thread, unique in the process, or -1 for none.
int64_t current_backward();
// Whether it leaves the nodes' saved values for another backward.
bool keeps_graph();
// Whether it goes to all leaves, as backward() without inputs does.
bool reaches_all_leaves();
// Whether it computes, or has computed, gradients of the inputs of a node, which may be gone.
bool will_run(const Node* node, uint64_t sequence_nr);

// The node whose hooks run on this thread; null for none.
Node* hooks_running_of();

// Runs `callback` after the backward that runs on this thread. RuntimeError when none runs.
void queue_callback(std::function<void()> callback);

}  // namespace treadle::autograd
