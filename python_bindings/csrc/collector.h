// The traversal for Python's garbage collector of objects that C++ holds: hooks, `ctx`, and tensors
// with attributes, behind a tensor or a node of the graph.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "autograd/graph/node.h"
#include "core/tensor/tensor.h"
#include "python_bindings/csrc/python.h"

namespace treadle::python {

// For tp_traverse of an object that holds `tensor` or `node`. See Note [What the collector sees].
int visit_behind(const Tensor& tensor, visitproc visit, void* arg);
int visit_behind(const autograd::NodePtr& node, visitproc visit, void* arg);
// Whether the collector would look behind the handle now.
bool is_sole_owner(const Tensor& tensor);
bool is_sole_owner(const autograd::NodePtr& node);

// Whether C++ holds objects that the graph may lead to, so that tensors with a history are to be
// tracked.
bool graph_holds_objects();

// Counts one object that the graph holds, for as long as it lives.
class HeldByGraph {
 public:
  HeldByGraph();
  ~HeldByGraph();
  HeldByGraph(const HeldByGraph&) = delete;
  HeldByGraph& operator=(const HeldByGraph&) = delete;
};

}  // namespace treadle::python
