// The math switches of the process.
#include "core/base/math_switches.h"

namespace treadle {

MathSwitches& math_switches() {
  static MathSwitches switches;
  return switches;
}

}  // namespace treadle
