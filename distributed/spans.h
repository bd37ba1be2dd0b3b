// The memory of tensors as Python gives it to extension modules.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "distributed/call.h"

namespace treadle::distributed {

using Address = std::pair<uintptr_t, size_t>;

inline std::vector<Span> spans(const std::vector<Address>& addresses) {
  std::vector<Span> found;
  found.reserve(addresses.size());
  for (const auto& [data, bytes] : addresses)
    found.push_back({reinterpret_cast<char*>(data), bytes});
  return found;
}

}  // namespace treadle::distributed
