// The alignment of memory from outside: whether elements of a dtype may begin at its address.
//
//   b = torch.frombuffer(buffer, dtype=torch.uint8, offset=1)
//   b[:8].view(torch.int64)        # the processor need not read an int64 there
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/error.h"
#include "core/base/scalar_type.h"
#include "core/tensor/storage.h"

namespace treadle {

// RuntimeError unless it does. A complex number may begin at the alignment of its parts.
inline void require_aligned(const StorageImpl& storage, ScalarType dtype) {
  if (storage.owns_memory()) return;
  const auto address = reinterpret_cast<uintptr_t>(storage.address());
  const auto item = static_cast<uintptr_t>(item_size(is_complex(dtype) ? to_real(dtype) : dtype));
  const auto off = address % item;
  check<ErrorKind::Runtime>(off == 0, "expected memory in which elements of ", name_of(dtype),
                            " are aligned, got memory of another library that begins ", off,
                            off == 1 ? " byte off" : " bytes off", "; clone it first");
}

}  // namespace treadle
