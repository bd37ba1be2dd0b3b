// Loads plug-ins, and negotiates a version with each.
//
// SPDX-License-Identifier: Apache-2.0
#include "plugin/host/loader.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

#include "core/base/error.h"
#include "core/base/fork_safe_mutex.h"
#include "plugin/host/api.h"
#include "plugin/host/boundary.h"
#include "plugin/host/library_file.h"
#include "plugin/host/registration.h"

namespace treadle::plugin {
namespace {

// Versions of the interface that a plug-in may be built for.
constexpr uint32_t kOldestVersion = 1, kNewestVersion = TREADLE_PLUGIN_VERSION;

struct Loaded {
  ForkSafeMutex mutex;  // held while one starts, so that none starts twice
  std::map<void*, LoadedPlugin> plugins;
};
Loaded& loaded() {
  static auto* loaded = new Loaded;
  return *loaded;
}

std::string text_of(const char* text) { return text && *text ? text : "unknown"; }

const treadle_plugin& entry_of(void* library, const std::string& path) {
  using Entry = const treadle_plugin* (*)(void);
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "treadle_plugin_entry"));
  check<ErrorKind::Runtime>(entry != nullptr, OpName(path),
                            "expected a plug-in, with a function treadle_plugin_entry, got a "
                            "library without one");
  const treadle_plugin* plugin = entry();
  check<ErrorKind::Runtime>(plugin != nullptr, OpName(path),
                            "expected treadle_plugin_entry to describe a plug-in, got null");
  return *plugin;
}

void check_version(const treadle_plugin& plugin, const std::string& path) {
  const uint32_t version = plugin.interface_version;
  if (version >= kOldestVersion && version <= kNewestVersion) return;
  const std::string known = kOldestVersion == kNewestVersion
                                ? str("version ", kNewestVersion)
                                : str("versions ", kOldestVersion, " to ", kNewestVersion);
  fail<ErrorKind::Runtime>(
      "plug-in '", text_of(plugin.name), "' (", path, "): expected one built for ", known,
      " of the plug-in interface, which Treadle ", host_version(), " has, got version ", version,
      version > kNewestVersion ? "\ninstall a newer Treadle, or an older plug-in"
                               : "\ninstall a newer plug-in, or an older Treadle");
}

LoadedPlugin start(const treadle_plugin& plugin, const std::string& path) {
  check_version(plugin, path);
  const LoadedPlugin info{text_of(plugin.name), text_of(plugin.version), path,
                          static_cast<int>(plugin.interface_version)};
  check<ErrorKind::Runtime>(plugin.start != nullptr, "plug-in '", info.name, "' (", path,
                            "): expected a start function, got none");
  Start registrations(info.name, info.version);
  try {
    last_error().clear();
    check_status(plugin.start(host_api()));
  } catch (const Error& error) {
    throw Error(error.kind() == ErrorKind::OutOfMemory ? error.kind() : ErrorKind::Runtime,
                str("plug-in '", info.name, "' ", info.version, " (", path,
                    ") could not start: ", error.what()));
  }
  registrations.keep();
  return info;
}

}  // namespace

LoadedPlugin load_plugin(const std::string& path) {
  require_whole_library(path);
  Loaded& l = loaded();
  const std::lock_guard lock(l.mutex);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const std::string why = text_of(dlerror()), named = path + ": ";
    fail<ErrorKind::Runtime>(OpName(path), "expected a shared library that can be loaded, got: ",
                             why.starts_with(named) ? why.substr(named.size()) : why);
  }
  if (const auto it = l.plugins.find(library); it != l.plugins.end()) return it->second;
  // A library that failed stays mapped, because work that it began may still be running.
  const LoadedPlugin info = start(entry_of(library, path), path);
  l.plugins.emplace(library, info);
  return info;
}

std::vector<LoadedPlugin> loaded_plugins() {
  Loaded& l = loaded();
  const std::lock_guard lock(l.mutex);
  std::vector<LoadedPlugin> all;
  for (const auto& [library, info] : l.plugins) all.push_back(info);
  return all;
}

}  // namespace treadle::plugin
