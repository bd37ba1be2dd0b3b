// Decides by address ranges and strides alone, never by data.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/overlap.h"

#include "aten/engine/strides/view_shapes.h"

namespace treadle {
namespace {

bool same_geometry(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
         (a.strides() == b.strides() || (a.is_contiguous() && b.is_contiguous()));
}

// Where a tensor lies among all memory of the host, or in its device's storage.
uintptr_t start_of(const Tensor& t) {
  return reinterpret_cast<uintptr_t>(t.impl()->storage_data());
}

}  // namespace

MemoryRange memory_range(const Tensor& t) {
  int64_t low = t.storage_offset(), high = low;
  if (t.is_contiguous() && t.numel() > 0) high += t.numel() - 1;
  for (size_t d = 0; !t.is_contiguous() && d < t.sizes().size(); ++d) {
    const int64_t span = (t.sizes()[d] - 1) * t.strides()[d];
    (span < 0 ? low : high) += span;
  }
  return {low * t.element_size(), (high + 1) * t.element_size()};
}

bool has_internal_overlap(const Tensor& t) {
  if (t.is_contiguous()) return false;
  for (size_t d = 0; d < t.sizes().size(); ++d) {
    if (t.strides()[d] == 0 && t.sizes()[d] > 1) return true;
  }
  return false;
}

Overlap overlap_of(const Tensor& a, const Tensor& b) {
  const uintptr_t start_a = start_of(a), start_b = start_of(b);
  // Mostly each tensor has memory of its own, and there is nothing more to ask.
  if (a.is_cpu() && b.is_cpu() &&
      (start_a >= start_b + b.storage()->nbytes() || start_b >= start_a + a.storage()->nbytes()))
    return Overlap::None;
  if (a.numel() == 0 || b.numel() == 0) return Overlap::None;
  // A device's storage may be a handle, which says nothing about its neighbours.
  const bool comparable = (a.is_cpu() && b.is_cpu()) || a.storage() == b.storage() ||
                          (start_a != 0 && start_a == start_b);
  if (!comparable) return Overlap::None;
  const MemoryRange ra = memory_range(a), rb = memory_range(b);
  const uintptr_t low_a = start_a + static_cast<uintptr_t>(ra.low);
  const uintptr_t low_b = start_b + static_cast<uintptr_t>(rb.low);
  if (low_a >= low_b + static_cast<uintptr_t>(rb.high - rb.low) ||
      low_b >= low_a + static_cast<uintptr_t>(ra.high - ra.low))
    return Overlap::None;
  if (low_a == low_b && same_geometry(a, b)) return Overlap::Full;
  return shape::is_dense(a) && shape::is_dense(b) ? Overlap::Partial : Overlap::Unknown;
}

void require_writable(const char* op, const Tensor& t) {
  check<ErrorKind::Runtime>(t.storage()->writable(), OpName(op),
                            "expected memory that may be written, got a read-only tensor");
  check<ErrorKind::Runtime>(
      !has_internal_overlap(t), OpName(op),
      "expected to write a tensor whose elements do not share memory, got sizes = ", t.sizes(),
      ", strides = ", t.strides(), "; clone() it first");
}

}  // namespace treadle
