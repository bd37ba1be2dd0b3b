// Decided by address ranges and strides alone; never looks at data.
#include "aten/iterator/overlap.h"

#include "aten/iterator/loop_geometry.h"

namespace treadle {
namespace {

bool same_places(const Tensor& a, const Tensor& b) {
  return a.storage_offset() == b.storage_offset() && a.dtype() == b.dtype() &&
         a.sizes() == b.sizes() &&
         (a.strides() == b.strides() || (a.is_contiguous() && b.is_contiguous()));
}

}  // namespace

MemoryRange memory_range(const Tensor& t) {
  int64_t low = t.storage_offset(), high = low;
  for (size_t d = 0; d < t.sizes().size(); ++d) {
    const int64_t span = (t.sizes()[d] - 1) * t.strides()[d];
    (span < 0 ? low : high) += span;
  }
  return {low * t.element_size(), (high + 1) * t.element_size()};
}

bool is_dense(const Tensor& t) {
  if (t.is_contiguous()) return true;
  const MemoryRange r = memory_range(t);
  return r.high - r.low == t.nbytes() && !has_internal_overlap(t);
}

bool has_internal_overlap(const Tensor& t) {
  if (t.is_contiguous()) return false;
  for (size_t d = 0; d < t.sizes().size(); ++d) {
    if (t.strides()[d] == 0 && t.sizes()[d] > 1) return true;
  }
  return false;
}

Overlap overlap_of(const Tensor& a, const Tensor& b) {
  const bool one_memory =
      a.storage() == b.storage() ||
      (a.storage()->data() != nullptr && a.storage()->data() == b.storage()->data());
  if (!one_memory || a.numel() == 0 || b.numel() == 0) return Overlap::None;
  if (same_places(a, b)) return Overlap::Full;
  const MemoryRange ra = memory_range(a), rb = memory_range(b);
  if (ra.low >= rb.high || rb.low >= ra.high) return Overlap::None;
  return is_dense(a) && is_dense(b) ? Overlap::Partial : Overlap::Unknown;
}

void require_writable(const char* op, const Tensor& t) {
  check<ErrorKind::Runtime>(t.storage()->writable(), op,
                            ": expected memory that may be written, got a read-only tensor");
  check<ErrorKind::Runtime>(
      !has_internal_overlap(t), op,
      ": expected to write a tensor whose elements do not share memory, got sizes = ", t.sizes(),
      ", strides = ", t.strides(), "; clone() it first");
}

}  // namespace treadle
