// Overlap: whether tensors share memory in a way that makes writing one of them ambiguous.
//
// Host memory is compared by addresses, because two storages may wrap the same foreign buffer. No
// other code makes this decision.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle {

enum class Overlap : uint8_t {
  None,
  Full,     // the same elements at the same places: an elementwise write is well defined
  Partial,  // dense and shifted: certainly shared elements
  Unknown,  // the ranges of addresses meet; elements may or may not be shared
};
Overlap overlap_of(const Tensor& a, const Tensor& b);
// Whether a write to one may change the other.
inline bool meets(const Tensor& a, const Tensor& b) { return overlap_of(a, b) != Overlap::None; }

// From the tensor's lowest element to past its highest, in bytes from the storage's start.
struct MemoryRange {
  int64_t low, high;
};
MemoryRange memory_range(const Tensor& t);

// Whether an index tuple is certain to share its element with another: a stride of 0 along a
// dimension of more than one.
bool has_internal_overlap(const Tensor& t);

// RuntimeError unless `t` can be the target of a write: its memory is writable and no two elements
// are one.
void require_writable(const char* op, const Tensor& t);

}  // namespace treadle
