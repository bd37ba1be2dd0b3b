// The table of functions that plug-ins receive.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/treadle/plugin.h"

namespace treadle::plugin {

const treadle_api* host_api();
const char* host_version();  // "0.1.0"

}  // namespace treadle::plugin
