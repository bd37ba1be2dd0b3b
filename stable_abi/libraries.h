// Libraries of operators: what an extension defines and implements, until it is taken back.
//
// While the loader loads an extension, its registrations do not fail: the extension could only
// throw in an initialiser of a static variable, which ends the program. Errors are collected, and
// the loader raises them.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stable_abi/boundary.h"

extern "C" {

// The beginning of a load, on this thread; another one may be within it.
AOTI_TORCH_EXPORT void treadle_stable_abi_begin_load();
// Its end: a text that lives until the next load of this thread. It is "error TEXT" if there were
// errors, and then nothing stays registered; else lines of "operator NAME TAG..." and
// "module NAMESPACE MODULE".
AOTI_TORCH_EXPORT const char* treadle_stable_abi_end_load();

}  // extern "C"
