// Python code that runs on behalf of operators: Note [Operators that come to rest].
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "python_bindings/csrc/python.h"

namespace treadle::python {

// Under the interpreter lock: Python code runs on behalf of the operators that this thread is in.
// See Note [Operators that come to rest].
class Rest {
 public:
  Rest();
  ~Rest();
  Rest(const Rest&) = delete;
  Rest& operator=(const Rest&) = delete;

 private:
  int resting_;
};

// Registers with the core the functions that wait for other threads.
void init_quiescence();

}  // namespace treadle::python
