// Python's part of PyTorch's stable ABI.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stable_abi/python_functions.h"

namespace treadle::python {

const stable_abi::PythonFunctions& stable_abi_functions();

}  // namespace treadle::python
