// The table of functions that plug-ins receive.
#pragma once

#include "plugin/treadle/plugin.h"

namespace treadle::plugin {

const treadle_api* host_api();
const char* host_version();  // "0.1.0"

}  // namespace treadle::plugin
