// PythonSlot: a tensor's reference to its Python object, so that one tensor is one object in
// Python.
//
// Usually the object owns the tensor. Python may drop an object that has attributes of its own
// while C++ still holds the tensor. Then the ownership is reversed: the tensor owns the object,
// until Python asks for it again or the tensor dies.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace treadle {

class TensorImpl;

class PythonSlot {
 public:
  PythonSlot() = default;
  PythonSlot(const PythonSlot&) = delete;
  PythonSlot& operator=(const PythonSlot&) = delete;

  // Under the interpreter lock, except for owned().
  void* object() const { return object_; }
  bool owned() const { return owned_.load(std::memory_order_acquire); }
  void set(void* object, bool owned) {
    object_ = object;
    owned_.store(owned, std::memory_order_release);
  }

  // Releases the object that a dying tensor owns. False if Python holds the tensor again. Then it
  // must not be destroyed.
  static bool release(TensorImpl& tensor);
  // The function that does this; set once, by the bindings.
  static void set_release(bool (*function)(TensorImpl&));

 private:
  void* object_ = nullptr;
  std::atomic<bool> owned_{false};
};

}  // namespace treadle
