// The registrations of plug-ins: backends, kernels, operators. All registrations during a plug-in's
// start are noted, so that a failed start leaves nothing behind.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/device.h"
#include "plugin/treadle/plugin.h"

namespace treadle::plugin {

// The plug-in that is starting on this thread; null outside of starts.
class Start {
 public:
  Start(std::string name, std::string version);
  ~Start();  // undoes all registrations unless kept
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;
  void keep() { undo_.clear(); }

  static Start* current();
  void note(std::function<void()> undo) { undo_.push_back(std::move(undo)); }
  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }
  std::string place() const { return "plug-in '" + name_ + "' " + version_; }

 private:
  std::string name_, version_;
  std::vector<std::function<void()>> undo_;
};

// These throw Error; see treadle_api.
void when_device(const std::string& name, treadle_status (*found)(void*, treadle_device_type),
                 void* context);
DeviceType register_backend(const treadle_backend& backend);
void register_kernel(const char* schema, DeviceType device, const treadle_dtype* dtypes,
                     size_t dtype_count, treadle_kernel kernel, void* context);
void define_operator(const treadle_definition& definition);

}  // namespace treadle::plugin
