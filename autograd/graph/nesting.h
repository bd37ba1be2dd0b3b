// The nesting depth of backward passes. A hook, or the backward of a function, may call backward
// itself, on the same stack.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace treadle::autograd {

// RuntimeError when the rest of this thread's stack does not suffice for one more nested backward.
void require_stack();

}  // namespace treadle::autograd
