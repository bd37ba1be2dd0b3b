// The garbage collector's traversal of the objects that C++ holds.
//
// Note [What the collector sees] The collector finds cycles by counting: an object whose references
// all come from traversed objects is garbage. So a tensor's object must report the objects that its
// tensor holds, such as a hook, but only while no other handle holds the tensor. Otherwise an
// object that may be freed would report a hook that stays. The traversal (autograd/graph/visit.h)
// follows each handle that is the only one.
//
// Each object is traversed several times in one collection, and must report the same objects each
// time. C++ code without the interpreter lock may take new handles meanwhile. It can do so only in
// a block of ReleaseGil that was entered before the collection began. While such blocks exist, no
// object is reported, and a later collection finds the garbage.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/collector.h"

#include <atomic>

#include "autograd/graph/visit.h"
#include "python_bindings/csrc/autograd/node_object.h"

namespace treadle::python {
namespace {

std::atomic<int> held_by_graph{0};

class Named final : public autograd::OwnedVisitor {
 public:
  Named(visitproc visit, void* arg) : visit_(visit), arg_(arg) {}
  // All Python objects held by C++ are held by a HeldFunction.
  void object(void* held) override { name(static_cast<HeldFunction*>(held)->get()); }
  void kept(const std::shared_ptr<void>& value) override { object(value.get()); }
  void tensor(const Tensor& t) override {
    const PythonSlot& slot = t.impl()->python();
    if (slot.owned()) name(static_cast<PyObject*>(slot.object()));
  }
  int result() const { return result_; }

 private:
  // Once a visitor returns a nonzero value, it is not called again.
  void name(PyObject* object) {
    if (object && !result_) result_ = visit_(object, arg_);
  }

  visitproc visit_;
  void* arg_;
  int result_ = 0;
};

}  // namespace

bool is_sole_owner(const Tensor& t) {
  return t.defined() && t.impl()->use_count() == 1 && ReleaseGil::count() == 0;
}
bool is_sole_owner(const autograd::NodePtr& node) {
  return node && node->use_count() == 1 && ReleaseGil::count() == 0;
}

int visit_behind(const Tensor& tensor, visitproc visit, void* arg) {
  if (!is_sole_owner(tensor)) return 0;
  Named named(visit, arg);
  autograd::visit_owned(tensor, named);
  return named.result();
}
int visit_behind(const autograd::NodePtr& node, visitproc visit, void* arg) {
  if (!is_sole_owner(node)) return 0;
  Named named(visit, arg);
  autograd::visit_owned(*node, named);
  return named.result();
}

bool graph_holds_objects() { return held_by_graph.load(std::memory_order_relaxed) > 0; }
HeldByGraph::HeldByGraph() { held_by_graph.fetch_add(1, std::memory_order_relaxed); }
HeldByGraph::~HeldByGraph() { held_by_graph.fetch_sub(1, std::memory_order_relaxed); }

}  // namespace treadle::python
