// SavedVisitor: reads by name the values that a node has saved for backward, for tools that inspect
// the graph.
//
//   void show_saved(SavedVisitor& visitor) const override {       // generated, in MulBackward0
//     visitor.show(*this, "self", self_);
//   }
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "autograd/saved_tensor.h"
#include "core/dispatch/value.h"

namespace treadle::autograd {

class SavedVisitor {
 public:
  virtual ~SavedVisitor() = default;
  // Called for each name. A value is only made when the result is true.
  virtual bool wants(const char* name) = 0;
  virtual void take(Value value) = 0;
  // A slot for tensors that is not asked for.
  virtual void pass(const SavedTensor&) {}
  virtual void pass(const SavedTensorList&) {}

  template <class T>
  void show(const Node& node, const char* name, const T& saved) {
    if (wants(name)) {
      take(value_of(node, name, saved));
    } else if constexpr (std::is_same_v<T, SavedTensor> || std::is_same_v<T, SavedTensorList>) {
      pass(saved);
    }
  }

 private:
  // A tensor that no formula needs is not saved: None.
  static Value value_of(const Node& node, const char* name, const SavedTensor& saved);
  static Value value_of(const Node& node, const char* name, const SavedTensorList& saved) {
    return Value(saved.unpack(node, name));
  }
  static Value value_of(const Node&, const char*, const DimVector& list) {
    return Value(std::vector<int64_t>(list.begin(), list.end()));
  }
  template <class T>
  static Value value_of(const Node& node, const char* name, const std::optional<T>& saved) {
    return saved ? value_of(node, name, *saved) : Value();
  }
  template <class T>
  static Value value_of(const Node&, const char*, const T& saved) {
    return Value(T(saved));
  }
};

}  // namespace treadle::autograd
