// Chooses between a copy of bytes, a generated kernel and the CPU.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/backends/device_copy.h"

#include "aten/engine/backends/generated.h"
#include "aten/engine/copy.h"
#include "aten/engine/overlap.h"
#include "aten/engine/resolve.h"
#include "core/device/backend.h"

namespace treadle {
namespace {

MemoryPlace place_of(const Tensor& t) {
  return {t.impl()->storage_data(), t.storage_offset() * t.element_size(), t.device()};
}

// Both contiguous, of one dtype and shape.
void move_values(const Tensor& dst, const Tensor& src, bool non_blocking) {
  move_bytes(place_of(dst), place_of(src), static_cast<size_t>(dst.nbytes()), non_blocking);
}

bool is_run(const Tensor& dst, const Tensor& src) {
  return dst.dtype() == src.dtype() && dst.sizes() == src.sizes() && dst.is_contiguous() &&
         src.is_contiguous();
}

// All bytes from the tensor's lowest element to past its highest, on the CPU, under a tensor of the
// same geometry.
Tensor range_on_cpu(const Tensor& t) {
  const MemoryRange range = memory_range(t);
  const int64_t item = t.element_size();
  const Tensor bytes = empty_cpu({(range.high - range.low) / item}, t.dtype());
  move_bytes({bytes.storage()->data(), 0, kCPU}, {t.impl()->storage_data(), range.low, t.device()},
             static_cast<size_t>(range.high - range.low), false);
  return alias_with_geometry(bytes, t.sizes(), t.strides(), t.storage_offset() - range.low / item);
}

void range_to_device(const Tensor& t, const Tensor& on_cpu) {
  const MemoryRange range = memory_range(t);
  move_bytes({t.impl()->storage_data(), range.low, t.device()}, {on_cpu.storage()->data(), 0, kCPU},
             static_cast<size_t>(range.high - range.low), false);
}

// The values, contiguous, on the tensor's own device; undefined where the backend has no way.
Tensor gathered(const Tensor& t) {
  const Tensor together = empty_tensor(t.sizes(), t.dtype(), t.device());
  return convert_generated(together, t) ? together : Tensor();
}

void to_device(const Tensor& dst, const Tensor& src) {
  Tensor ready = src;
  if (src.dtype() != dst.dtype() || src.sizes() != dst.sizes() || !src.is_contiguous()) {
    ready = empty_cpu(dst.sizes(), dst.dtype());
    copy_strided(ready, src);
  }
  if (dst.is_contiguous()) {
    move_values(dst, ready, false);
    return;
  }
  const Tensor together = empty_tensor(dst.sizes(), dst.dtype(), dst.device());
  move_values(together, ready, false);
  if (convert_generated(dst, together)) return;
  const Tensor around = range_on_cpu(dst);
  copy_strided(around, ready);
  range_to_device(dst, around);
}

}  // namespace

Tensor on_cpu(const Tensor& t) {
  if (t.is_cpu()) return t;
  if (needs_resolving(t)) [[unlikely]] {
    const Tensor copy = empty_cpu(t.sizes(), t.dtype());
    copy_resolved(copy, t);
    return copy;
  }
  if (t.numel() == 0) return empty_cpu(t.sizes(), t.dtype());
  if (!t.is_contiguous()) {
    const Tensor together = gathered(t);
    const Tensor around = together.defined() ? Tensor() : range_on_cpu(t);
    if (together.defined()) return on_cpu(together);
    const Tensor copy = empty_cpu(t.sizes(), t.dtype());
    copy_strided(copy, around);
    return copy;
  }
  const Tensor copy = empty_cpu(t.sizes(), t.dtype());
  move_values(copy, t, false);
  return copy;
}

void copy_between_devices(const Tensor& dst, const Tensor& src, bool non_blocking) {
  if (dst.numel() == 0) return;
  if (needs_resolving(dst) || needs_resolving(src)) [[unlikely]]
    return copy_resolved(dst, src);
  if (is_run(dst, src)) {
    if (overlap_of(dst, src) == Overlap::Full) return;
    if (overlap_of(dst, src) == Overlap::None) {
      move_values(dst, src, non_blocking);
      return;
    }
  }
  if (dst.is_cpu()) {
    copy_strided(dst, on_cpu(src));
    return;
  }
  const bool apart = overlap_of(dst, src) == Overlap::None;
  if (src.device() == dst.device() && apart && convert_generated(dst, src)) return;
  to_device(dst, on_cpu(src));
}

}  // namespace treadle
