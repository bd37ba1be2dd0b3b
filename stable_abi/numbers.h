// The numbers by which extensions know dtypes, layouts, memory formats and kinds of devices: those
// of PyTorch, since some extensions have them compiled in.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/device.h"
#include "core/base/scalar_type.h"

namespace treadle::stable_abi {

// NotImplementedError where extensions know no number for it.
int32_t number_of(ScalarType dtype);
int32_t number_of(Layout layout);
int32_t number_of(MemoryFormat format);
// A device of a backend from outside is privateuse1, unless its name is xpu or mps.
int32_t number_of(DeviceType type);

// ValueError for an unknown number; RuntimeError for a kind of device that has no backend here.
ScalarType dtype_of(int32_t number);
Layout layout_of(int32_t number);
MemoryFormat memory_format_of(int32_t number);
DeviceType device_type_of(int32_t number);
Device device_of(int32_t type, int32_t index);
// The device of a kind with the index; -1 is the current one. ValueError for an index that is none.
Device numbered(DeviceType type, int32_t index);

}  // namespace treadle::stable_abi
