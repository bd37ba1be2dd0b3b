// The table of dispatch keys.
//
// SPDX-License-Identifier: Apache-2.0
#include "stable_abi/keys.h"

#include <map>
#include <mutex>
#include <sstream>

#include "core/base/fork_safe_mutex.h"
#include "stable_abi/boundary.h"

namespace treadle::stable_abi {
namespace {

struct Keys {
  ForkSafeMutex mutex;
  std::map<std::string, Key> all;
};
Keys& keys() {
  static auto* const keys = new Keys;
  return *keys;
}

KeyKind kind_of(const std::string& word) {
  return word == "device"      ? KeyKind::Device
         : word == "composite" ? KeyKind::Composite
         : word == "default"   ? KeyKind::Default
         : word == "autograd"  ? KeyKind::Autograd
         : word == "autocast"  ? KeyKind::Autocast
                               : KeyKind::Elsewhere;
}

}  // namespace

Key read_key(const std::string& name) {
  Keys& k = keys();
  const std::lock_guard lock(k.mutex);
  const auto found = k.all.find(name);
  check<ErrorKind::Runtime>(found != k.all.end(), "expected a dispatch key, got '", name, "'");
  return found->second;
}

}  // namespace treadle::stable_abi

void treadle_stable_abi_set_keys(const char* lines) {
  using namespace treadle;              // NOLINT
  using namespace treadle::stable_abi;  // NOLINT
  std::istringstream text(lines);
  std::map<std::string, Key> all;
  for (std::string name, kind, device; text >> name >> kind >> device;) {
    const bool every = device == "*";
    all[name] = {kind_of(kind), every ? DeviceType::CPU : device_from_string(device).type, every};
  }
  Keys& k = keys();
  const std::lock_guard lock(k.mutex);
  k.all = std::move(all);
}
