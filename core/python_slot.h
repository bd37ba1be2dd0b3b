// PythonSlot: a tensor's place for its Python object, so that one tensor is one object in Python.
//
// Usually the object owns the tensor. When Python drops an object that has attributes of its own
// while C++ still holds the tensor, the roles turn round: the tensor owns the object, until Python
// asks for it again or the tensor dies.
#pragma once

namespace treadle {

class PythonSlot {
 public:
  PythonSlot() = default;
  PythonSlot(const PythonSlot&) = delete;
  PythonSlot& operator=(const PythonSlot&) = delete;
  ~PythonSlot() {
    if (owned_) [[unlikely]]
      release(object_);
  }

  void* object() const { return object_; }
  bool owned() const { return owned_; }
  // Under the interpreter lock.
  void set(void* object, bool owned) {
    object_ = object;
    owned_ = owned;
  }

  // What drops an owned object; set once, by the bindings.
  static void set_release(void (*function)(void*));

 private:
  static void release(void* object);

  void* object_ = nullptr;
  bool owned_ = false;
};

}  // namespace treadle
