// The switches of the process.
#include "core/math_switches.h"

namespace treadle {

MathSwitches& math_switches() {
  static MathSwitches switches;
  return switches;
}

}  // namespace treadle
