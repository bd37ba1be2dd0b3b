// MemoryFormat: the order of dimensions in memory, by PyTorch's names.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace c10 {
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d, NumOptions };
}
namespace torch::headeronly {
using c10::MemoryFormat;
}
