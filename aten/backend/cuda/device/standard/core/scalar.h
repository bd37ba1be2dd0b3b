// Numbers of a call come to a kernel in the type that is computed in: Scalar is a name only.
#pragma once

#include "core/base/scalar_type.h"

namespace treadle {

struct Scalar {
  template <class T>
  T to() const;
};

}  // namespace treadle
