// The math switches of the process.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/base/math_switches.h"

namespace treadle {

MathSwitches& math_switches() {
  static MathSwitches switches;
  return switches;
}

}  // namespace treadle
