// Loads plug-ins: shared libraries that implement the interface of treadle/plugin.h.
#pragma once

#include <string>
#include <vector>

namespace treadle::plugin {

struct LoadedPlugin {
  std::string name, version, path;
  int interface_version;
};

// Loads a shared library and starts the plug-in in it; one that is loaded already is not started
// again. RuntimeError, naming the library, where it cannot be loaded, is no plug-in, was built for
// another version of the interface, or fails to start; nothing of it is registered then.
LoadedPlugin load_plugin(const std::string& path);
std::vector<LoadedPlugin> loaded_plugins();

}  // namespace treadle::plugin
