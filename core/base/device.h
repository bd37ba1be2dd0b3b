// Device and Layout: two of the three small ids that every tensor carries. Both sets are open. The
// devices cpu, meta and cuda, and the layouts named here, exist from the start. Others are
// registered at run time by name.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace treadle {

enum class DeviceType : uint8_t { CPU = 0, Meta = 1, CUDA = 2 };
inline constexpr int kMaxDeviceTypes = 32;
// Where kernels of another layout than strided are registered if they serve all devices.
inline constexpr auto kEveryDevice = static_cast<DeviceType>(kMaxDeviceTypes);
enum class Layout : uint8_t {
  Strided = 0,
  SparseCoo = 1,
  SparseCsr = 2,
  SparseCsc = 3,
  SparseBsr = 4,
  SparseBsc = 5,
  Jagged = 6  // of nested tensors, which are a class in Python
};
inline constexpr int kMaxLayouts = 16;

struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = -1;  // -1: the current device of the type; CPU and meta tensors always carry -1
  friend constexpr bool operator==(const Device&, const Device&) = default;
  constexpr bool is_cpu() const { return type == DeviceType::CPU; }
  constexpr bool is_meta() const { return type == DeviceType::Meta; }
};
inline constexpr Device kCPU{DeviceType::CPU, -1};
inline constexpr Device kMeta{DeviceType::Meta, -1};

// Registers a new device type and returns its id. Throws ValueError when the name is taken or
// malformed, and RuntimeError when kMaxDeviceTypes are in use. Thread-safe.
DeviceType register_device_type(std::string_view name);
// Removes the name from the known ones. If it is registered again, it gets the same id.
void unregister_device_type(DeviceType type);
Layout register_layout(std::string_view name);
int num_layouts();
int num_device_types();

std::string_view name_of(DeviceType type);  // "cpu"
std::string_view name_of(Layout layout);    // "strided"
// "cpu", "cuda:1". Throws RuntimeError that lists the known names for any other text.
Device device_from_string(std::string_view text);
std::string to_string(Device device);  // "cuda:1"
inline std::string to_string(Layout layout) { return "treadle." + std::string(name_of(layout)); }

enum class MemoryFormat : uint8_t {
  Contiguous = 0,
  Preserve = 1,
  ChannelsLast = 2,
  ChannelsLast3d = 3
};
std::string to_string(MemoryFormat format);

}  // namespace treadle
