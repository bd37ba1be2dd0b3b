// The saved values of a node as attributes of its object: grad_fn._saved_self.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "autograd/saved_visitor.h"
#include "python_bindings/csrc/arguments/constants.h"
#include "python_bindings/csrc/autograd/node_object.h"
#include "python_bindings/csrc/binding.h"

namespace treadle::python {
namespace {

using autograd::Node;

constexpr std::string_view kPrefix = "_saved_";

class Names final : public autograd::SavedVisitor {
 public:
  bool wants(const char* name) override {
    found.push_back(std::string(kPrefix) + name);
    return false;
  }
  void take(Value) override {}

  std::vector<std::string> found;
};

class Lookup final : public autograd::SavedVisitor {
 public:
  explicit Lookup(std::string_view name) : name_(name) {}
  bool wants(const char* name) override { return name_ == name; }
  void take(Value value) override { found = std::move(value); }

  std::optional<Value> found;

 private:
  std::string_view name_;
};

struct Wrap {
  PyObject* operator()(std::monostate) const { return none(); }
  PyObject* operator()(const std::string& text) const { return unicode(text).release(); }
  template <class T>
  PyObject* operator()(const std::vector<T>& list) const {
    Object tuple(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
    for (size_t i = 0; i < list.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), wrap(T(list[i])));
    return tuple.release();
  }
  // A value that no formula needs.
  PyObject* operator()(Layout) const { return none(); }
  PyObject* operator()(MemoryFormat) const { return none(); }
  PyObject* operator()(const Generator&) const { return none(); }
  template <class T>
  PyObject* operator()(const T& value) const {
    return wrap(T(value));
  }
};

}  // namespace

PyObject* saved_value(const Node& node, std::string_view attribute) {
  if (!attribute.starts_with(kPrefix)) return nullptr;
  Lookup lookup(attribute.substr(kPrefix.size()));
  node.show_saved(lookup);
  return lookup.found ? std::visit(Wrap{}, lookup.found->variant()) : nullptr;
}

std::vector<std::string> saved_names(const Node& node) {
  Names names;
  node.show_saved(names);
  return std::move(names.found);
}

}  // namespace treadle::python
