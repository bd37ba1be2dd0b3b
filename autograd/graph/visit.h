// Visits objects of another language that a tensor keeps alive: the hooks of the tensor and of its
// graph, the contexts of custom functions, the values that pack hooks returned. A garbage collector
// uses it to find a cycle that leads through such objects.
//
//   struct Told : OwnedVisitor {
//     void object(void* o) override { visit(static_cast<PyObject*>(o)); } ...
//   };
//   if (t.impl()->use_count() == 1) visit_owned(t, told);
//
// The visit follows only objects that have one owner. So each reference is reported once, by its
// owner. An object that the graph of another tensor or a running backward also holds is left out.
// Hence no other thread can reach the visited objects, and the visit takes no locks. It never
// recurses, and it changes no reference count.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "autograd/graph/node.h"
#include "core/tensor/tensor.h"

namespace treadle::autograd {

class SavedTensor;
class SavedTensorList;
struct AutogradMeta;

class OwnedVisitor {
 public:
  virtual ~OwnedVisitor() = default;
  // A reference to an object: the `held` of a hook, or an object that a node reports in
  // Node::visit_held().
  virtual void object(void* object) = 0;
  // A value that outside code keeps with a node: NodeHooks::notes, or a result of pack().
  virtual void kept(const std::shared_ptr<void>& value) = 0;
  // A tensor of which this is the only reference (saved, a gradient, a base). It may own its Python
  // object. The visit traverses its other references itself.
  virtual void tensor(const Tensor& t) = 0;
};

// Reports the objects that `t` owns: its hooks, its gradient, its base where it is a view, and the
// graph behind it. The caller has the only reference to `t`. A collector repeats the visit often,
// so it ends after some thousand nodes.
void visit_owned(const Tensor& t, OwnedVisitor& visitor);
// The same for the objects that `node` owns.
void visit_owned(const Node& node, OwnedVisitor& visitor);

// Releases all that visit_owned() reports, and so breaks each cycle that leads through `t`. The
// tensor has neither hooks nor gradient nor history afterwards.
void clear_owned(const Tensor& t);

// The traversal, as owners of objects see it. Each owner reports all objects that it holds.
class OwnedWalk {
 public:
  explicit OwnedWalk(OwnedVisitor& visitor) : visitor_(visitor) {}
  void object(void* object) {
    if (object) visitor_.object(object);
  }
  void kept(const std::shared_ptr<void>& value) {
    if (value.use_count() == 1) visitor_.kept(value);
  }
  void tensor(const Tensor& t);
  // The parts of a tensor of another layout than strided, if it alone owns them.
  void parts(const Tensor& t);
  void node(const NodePtr& node) {
    if (node && node->use_count() == 1) nodes_.push_back(node.get());
  }
  void saved(const SavedTensor& saved);
  void saved(const SavedTensorList& saved);

 private:
  friend void visit_owned(const Tensor& t, OwnedVisitor& visitor);
  friend void visit_owned(const Node& node, OwnedVisitor& visitor);
  template <class Hook>
  void hooks(const HookList<Hook>& list) {
    for (const auto& entry : list.entries()) {
      if (entry.hook.use_count() == 1) object(entry.held);
    }
  }
  void go();
  void expand(const AutogradMeta& meta);
  void expand(const Node& node);

  OwnedVisitor& visitor_;
  std::vector<const AutogradMeta*> metas_;
  std::vector<const Node*> nodes_;
};

}  // namespace treadle::autograd
