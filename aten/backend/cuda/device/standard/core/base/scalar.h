// A call's numbers arrive in a kernel in the compute type, so Scalar is only a name here.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/scalar_type.h"

namespace treadle {

struct Scalar {
  template <class T>
  T to() const;
};

}  // namespace treadle
