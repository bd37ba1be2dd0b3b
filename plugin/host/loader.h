// Loads plug-ins: shared libraries that implement the interface of treadle/plugin.h.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace treadle::plugin {

struct LoadedPlugin {
  std::string name, version, path;
  int interface_version;
};

// Loads a shared library and starts the plug-in in it. A loaded one is not started again.
// RuntimeError, naming the library, if it cannot be loaded, is no plug-in, was built for another
// version of the interface, or fails to start. Then none of its registrations remain.
LoadedPlugin load_plugin(const std::string& path);
std::vector<LoadedPlugin> loaded_plugins();

}  // namespace treadle::plugin
