// The registries of device types and layouts.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/base/device.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <iterator>
#include <mutex>

#include "core/base/error.h"
#include "core/base/fork_safe_mutex.h"

namespace treadle {
namespace {

// Names by id. Entries are written once, before the count that covers them, so readers need no
// lock.
template <int kMax>
class Names {
 public:
  Names(std::initializer_list<std::string_view> known) {
    for (std::string_view name : known) names_[count_++] = name;
  }

  int add(std::string_view name, const char* what) {
    const std::lock_guard lock(mutex_);
    bool well_formed = !name.empty() && name.size() <= 32 && name[0] >= 'a' && name[0] <= 'z';
    for (char c : name)
      well_formed = well_formed && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_');
    check<ErrorKind::Value>(
        well_formed, "expected the name of a ", what,
        " to be at most 32 lower-case letters, digits and '_', a letter first, got '", name, "'");
    const int count = count_.load();
    for (int i = 0; i < count; ++i) {
      if (names_[i] != name) continue;
      check<ErrorKind::Value>(unregistered_[i], "expected a new ", what, " name, got '", name,
                              "', which is taken");
      unregistered_[i] = false;
      return i;
    }
    check<ErrorKind::Runtime>(count < kMax, "expected at most ", kMax, " kinds of ", what,
                              ", got one more: '", name, "'");
    names_[count] = name;
    count_.store(count + 1, std::memory_order_release);
    return count;
  }

  void unregister(int id) { unregistered_[id] = true; }

  // An id for a name that may be registered later; -1 where there is none left.
  int reserve(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const int count = count_.load();
    for (int i = 0; i < count; ++i)
      if (names_[i] == name) return i;
    if (count == kMax) return -1;
    names_[count] = name;
    unregistered_[count] = true;
    count_.store(count + 1, std::memory_order_release);
    return count;
  }

  // The names that are not unregistered, with commas between them.
  std::string list() const {
    std::string text;
    for (int i = 0; i < count(); ++i) {
      if (unregistered_[i]) continue;
      if (!text.empty()) text += ", ";
      text += names_[i];
    }
    return text;
  }

  bool knows(std::string_view name) const {
    for (int i = 0; i < count(); ++i)
      if (names_[i] == name) return true;
    return false;
  }

  int count() const { return count_.load(std::memory_order_acquire); }
  std::string_view operator[](int id) const {
    return id >= 0 && id < count() ? std::string_view(names_[id]) : "unknown";
  }

 private:
  std::array<std::string, kMax> names_;
  std::array<std::atomic<bool>, kMax> unregistered_{};
  std::atomic<int> count_{0};
  ForkSafeMutex mutex_;
};

// Device types that PyTorch has and Treadle does not. Programs make objects of them to compare
// with; a backend may register one.
constexpr std::string_view kOfPyTorch[] = {
    "fpga", "hip",    "hpu",    "ideep", "ipu",           "lazy",   "maia", "mkldnn", "mps",
    "mtia", "opencl", "opengl", "ve",    "privateuseone", "vulkan", "xla",  "xpu"};

// Never destroyed: errors met while the program ends still name devices.
Names<kMaxDeviceTypes>& device_names() {
  static auto* names = new Names<kMaxDeviceTypes>{"cpu", "meta", "cuda"};
  return *names;
}
Names<kMaxLayouts>& layout_names() {
  static auto* names = new Names<kMaxLayouts>{
      "strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};
  return *names;
}

}  // namespace

DeviceType register_device_type(std::string_view name) {
  return static_cast<DeviceType>(device_names().add(name, "device"));
}
Layout register_layout(std::string_view name) {
  return static_cast<Layout>(layout_names().add(name, "layout"));
}
void unregister_device_type(DeviceType type) { device_names().unregister(static_cast<int>(type)); }
int num_layouts() { return layout_names().count(); }
int num_device_types() { return device_names().count(); }

std::string_view name_of(DeviceType type) {
  if (type == kEveryDevice) return "every device";
  return device_names()[static_cast<int>(type)];
}
std::string_view name_of(Layout layout) { return layout_names()[static_cast<int>(layout)]; }

Device device_from_string(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  int index = -1;
  bool ok = true;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    ok = error == std::errc() && end == digits.data() + digits.size() && index >= 0 &&
         index <= 127 && (digits.size() == 1 || digits[0] != '0');
  }
  Names<kMaxDeviceTypes>& names = device_names();
  if (ok && std::find(std::begin(kOfPyTorch), std::end(kOfPyTorch), name) != std::end(kOfPyTorch))
    ok = names.reserve(name) >= 0;
  for (int i = 0; ok && i < names.count(); ++i) {
    if (names[i] != name) continue;
    const auto type = static_cast<DeviceType>(i);
    // There is one CPU and one meta device, so "cpu:0" is "cpu".
    if (type == DeviceType::CPU || type == DeviceType::Meta) {
      ok = index <= 0;
      index = -1;
      if (!ok) break;
    }
    return {type, static_cast<int8_t>(index)};
  }
  // Programs read the types out of these words, which are PyTorch's.
  check<ErrorKind::Runtime>(names.knows(name), "Expected one of ", names.list(),
                            " device type at start of device string: ", text);
  fail<ErrorKind::Runtime>("expected a device, one of ", names.list(),
                           " with an optional index such as ':1', got '", text, "'");
}

std::string to_string(Device device) {
  std::string text(name_of(device.type));
  if (device.index >= 0) text += ":" + std::to_string(device.index);
  return text;
}

std::string to_string(MemoryFormat format) {
  switch (format) {
    case MemoryFormat::Contiguous:
      return "treadle.contiguous_format";
    case MemoryFormat::Preserve:
      return "treadle.preserve_format";
    case MemoryFormat::ChannelsLast:
      return "treadle.channels_last";
    case MemoryFormat::ChannelsLast3d:
      return "treadle.channels_last_3d";
  }
  return "unknown memory format";
}

}  // namespace treadle
