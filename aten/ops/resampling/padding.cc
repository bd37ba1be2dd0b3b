// Padding: a border around the last dimensions, of a constant or of the tensor's own values.
//
// The modes other than constant are selections along one dimension at a time. Position p of the
// padded line, counted from the line's first element, shows the element
//
//   reflect    (n - 1) - |(n - 1) - |p||     the ends are not repeated
//   replicate  p, or the end beyond which it lies
//   circular   p mod n, of the part that negative padding leaves
//
// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "aten/engine/renamed_errors.h"
#include "aten/engine/strides/memory_format.h"
#include "aten/ops/_pad_circular.h"
#include "aten/ops/abs.h"
#include "aten/ops/add.h"
#include "aten/ops/arange.h"
#include "aten/ops/clamp.h"
#include "aten/ops/clone.h"
#include "aten/ops/constant_pad_nd.h"
#include "aten/ops/copy_.h"
#include "aten/ops/empty.h"
#include "aten/ops/fill_.h"
#include "aten/ops/index_select.h"
#include "aten/ops/narrow.h"
#include "aten/ops/new_empty.h"
#include "aten/ops/new_full.h"
#include "aten/ops/pad.h"
#include "aten/ops/reflection_pad1d.h"
#include "aten/ops/reflection_pad2d.h"
#include "aten/ops/reflection_pad3d.h"
#include "aten/ops/remainder.h"
#include "aten/ops/replication_pad1d.h"
#include "aten/ops/replication_pad2d.h"
#include "aten/ops/replication_pad3d.h"
#include "aten/ops/rsub.h"
#include "aten/ops/sub.h"
#include "core/base/error.h"

namespace treadle::composite {
namespace {

// The size of a dimension padded by these amounts, which may be negative.
int64_t padded_size(const char* op, int64_t size, int64_t before, int64_t after, IntList pad,
                    IntList sizes) {
  int64_t padded = 0;
  constexpr int64_t kFar = INT64_MAX / 4;
  check<ErrorKind::Runtime>(std::max(before, after) < kFar && std::min(before, after) > -kFar,
                            OpName(op), "expected pad within 2^61, got pad = ", pad);
  check<ErrorKind::Runtime>(!__builtin_add_overflow(size, before, &padded) &&
                                !__builtin_add_overflow(padded, after, &padded) && padded >= 0,
                            OpName(op), "expected a size that stays non-negative, got pad = ", pad,
                            " for shape ", sizes);
  return padded;
}

Tensor source_positions(std::string_view mode, const Tensor& positions, int64_t size,
                        int64_t before, int64_t after) {
  const Scalar last(size - 1);
  if (mode == "replicate") return aten::clamp(positions, Scalar(0), last);
  if (mode == "circular") {
    const int64_t first = std::max<int64_t>(0, -before), end = size + std::min<int64_t>(0, after);
    return aten::add(aten::remainder(aten::sub(positions, Scalar(first)), Scalar(end - first)),
                     Scalar(first));
  }
  return aten::rsub(aten::abs(aten::rsub(aten::abs(positions), last)), last);
}

// Raises where there is no memory for a result like `self` of these sizes, before the dimensions
// are padded one after the other.
void require_room(IntList sizes, const Tensor& self) {
  constexpr int64_t kLarge = int64_t{1} << 26;
  if (checked_numel(sizes, self.element_size()) * self.element_size() > kLarge)
    aten::new_empty(self, sizes);
}

Tensor pad_by_selection(const char* op, const Tensor& self, IntList pad, std::string_view mode) {
  const size_t rank = self.sizes().size(), spatial = pad.size() / 2;
  check<ErrorKind::Runtime>(
      pad.size() % 2 == 0 && spatial >= 1 && spatial <= 3 &&
          (rank == spatial + 1 || rank == spatial + 2),
      OpName(op),
      "expected pad as (before, after) pairs for the last 1 to 3 dimensions of an input with "
      "one or two more, got pad = ",
      pad, " for shape ", self.sizes());
  DimVector result(self.sizes());
  for (size_t i = 0; i < spatial; ++i) {
    const size_t d = rank - 1 - i;
    const int64_t before = pad[2 * i], after = pad[2 * i + 1], size = self.sizes()[d];
    if (before == 0 && after == 0) continue;
    const int64_t padded = padded_size(op, size, before, after, pad, self.sizes());
    check<ErrorKind::Runtime>(size > 0 && padded > 0, OpName(op),
                              "expected padded dimensions that are not empty, got pad = ", pad,
                              " for shape ", self.sizes());
    const int64_t most = mode == "reflect" ? size - 1 : mode == "circular" ? size : INT64_MAX / 4;
    check<ErrorKind::Runtime>(before <= most && after <= most, OpName(op),
                              "expected pad of at most ", most, " for mode '", mode, "' and size ",
                              size, ", got pad = ", pad);
    check<ErrorKind::Runtime>(
        mode != "circular" || size + std::min(before, int64_t{0}) + std::min(after, int64_t{0}) > 0,
        OpName(op), "expected pad that leaves an element to repeat, got pad = ", pad, " for shape ",
        self.sizes());
    result[d] = padded;
  }
  require_room(result, self);
  Tensor t = self;
  for (size_t i = 0; i < spatial; ++i) {
    const size_t d = rank - 1 - i;
    const int64_t before = pad[2 * i], after = pad[2 * i + 1], size = self.sizes()[d];
    if (before == 0 && after == 0) continue;
    const Tensor positions = aten::arange(Scalar(-before), Scalar(size + after), ScalarType::Int64,
                                          std::nullopt, self.device());
    t = aten::index_select(t, static_cast<int64_t>(d),
                           source_positions(mode, positions, size, before, after));
  }
  return t.is_same(self) ? aten::clone(self) : t;
}

}  // namespace

Tensor constant_pad_nd(const Tensor& self, IntList pad, const Scalar& value) {
  check<ErrorKind::Runtime>(pad.size() % 2 == 0 && pad.size() / 2 <= self.sizes().size(),
                            OpName("constant_pad_nd"),
                            "expected pad as (before, after) pairs for at most ", self.dim(),
                            " dimensions, got pad = ", pad);
  DimVector sizes(self.sizes());
  Tensor kept = self;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const size_t d = sizes.size() - 1 - i;
    const int64_t before = pad[2 * i], after = pad[2 * i + 1];
    const int64_t size = padded_size("constant_pad_nd", sizes[d], before, after, pad, self.sizes());
    // Negative entries cut.
    const int64_t start = std::min(before < 0 ? -before : 0, sizes[d]);
    const int64_t length = std::max<int64_t>(0, sizes[d] - start - (after < 0 ? -after : 0));
    kept = aten::narrow(kept, static_cast<int64_t>(d), start, length);
    sizes[d] = size;
  }
  const MemoryFormat format = shape::kept_format(self);
  const Tensor out = format == MemoryFormat::Contiguous
                         ? aten::new_full(self, sizes, value)
                         : aten::fill_(aten::empty(sizes, self.dtype(), std::nullopt, self.device(),
                                                   std::nullopt, format),
                                       value);
  Tensor inside = out;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t d = static_cast<int64_t>(sizes.size() - 1 - i);
    inside = aten::narrow(inside, d, std::min(std::max<int64_t>(0, pad[2 * i]), inside.size(d)),
                          kept.size(d));
  }
  aten::copy_(inside, kept);
  return out;
}

Tensor pad(const Tensor& self, IntList pad, std::string_view mode, std::optional<double> value) {
  if (mode == "constant") {
    return renamed("pad", "constant_pad_nd",
                   [&] { return aten::constant_pad_nd(self, pad, Scalar(value.value_or(0.0))); });
  }
  check<ErrorKind::Value>(!value || *value == 0.0, OpName("pad"), "expected no value with mode '",
                          mode, "', got value = ", value);
  return pad_by_selection("pad", self, pad, mode);
}

Tensor _pad_circular(const Tensor& self, IntList pad) {
  return pad_by_selection("_pad_circular", self, pad, "circular");
}

Tensor reflection_pad1d(const Tensor& self, IntList padding) {
  return pad_by_selection("reflection_pad1d", self, padding, "reflect");
}
Tensor reflection_pad2d(const Tensor& self, IntList padding) {
  return pad_by_selection("reflection_pad2d", self, padding, "reflect");
}
Tensor reflection_pad3d(const Tensor& self, IntList padding) {
  return pad_by_selection("reflection_pad3d", self, padding, "reflect");
}
Tensor replication_pad1d(const Tensor& self, IntList padding) {
  return pad_by_selection("replication_pad1d", self, padding, "replicate");
}
Tensor replication_pad2d(const Tensor& self, IntList padding) {
  return pad_by_selection("replication_pad2d", self, padding, "replicate");
}
Tensor replication_pad3d(const Tensor& self, IntList padding) {
  return pad_by_selection("replication_pad3d", self, padding, "replicate");
}

}  // namespace treadle::composite
