// PluginBackend: a Backend (core/device/backend.h) over the functions that a plug-in registered.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "core/device/backend.h"
#include "plugin/treadle/plugin.h"

namespace treadle::plugin {

// Copies the plug-in's structure. Members past its `size` count as zero. ValueError if a required
// member is missing.
std::unique_ptr<Backend> make_backend(const treadle_backend& given, const std::string& plugin,
                                      const std::string& plugin_version);

}  // namespace treadle::plugin
