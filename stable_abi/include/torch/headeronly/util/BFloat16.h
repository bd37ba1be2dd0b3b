// c10::BFloat16: a number of 16 bits, which is computed with in float.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/half.h"

namespace c10 {
using treadle::BFloat16;
}
namespace torch::headeronly {
using c10::BFloat16;
}
