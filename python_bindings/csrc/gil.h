// What becomes of a thread that the interpreter would end: Note [At the end of the program].
#pragma once

#include "python_bindings/csrc/python.h"

namespace treadle::python {

// Never returns: the thread waits for the end of the process.
[[noreturn]] void stay();

}  // namespace treadle::python
