// Operators that move elements between the channels and the plane: pixel_shuffle, its inverse,
// channel_shuffle.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/channel_shuffle.h"
#include "aten/ops/permute.h"
#include "aten/ops/pixel_shuffle.h"
#include "aten/ops/pixel_unshuffle.h"
#include "aten/ops/reshape.h"
#include "aten/ops/transpose.h"
#include "core/base/error.h"

namespace treadle::composite {
namespace {

void check_image(const char* op, const Tensor& t) {
  check<ErrorKind::Runtime>(t.dim() >= 3, OpName(op),
                            "expected input with at least 3 dimensions (..., channels, height, "
                            "width), got shape ",
                            t.sizes());
}

// (a, b, c) -> (a, c, b) on the last dimensions, given as positions from the first of them.
Tensor permuted(const Tensor& t, size_t leading, std::initializer_list<int64_t> last) {
  DimVector order;
  for (size_t d = 0; d < leading; ++d) order.push_back(static_cast<int64_t>(d));
  for (const int64_t d : last) order.push_back(static_cast<int64_t>(leading) + d);
  return aten::permute(t, order);
}

DimVector with_last(IntList sizes, std::initializer_list<int64_t> last) {
  DimVector out(sizes.slice(0, sizes.size() - 3));
  for (const int64_t size : last) out.push_back(size);
  return out;
}

}  // namespace

Tensor pixel_shuffle(const Tensor& self, int64_t upscale_factor) {
  check_image("pixel_shuffle", self);
  const int64_t r = upscale_factor, c = self.size(-3), h = self.size(-2), w = self.size(-1);
  int64_t square = 0, tall = 0, wide = 0;
  check<ErrorKind::Runtime>(!__builtin_mul_overflow(r, r, &square) && c % square == 0 &&
                                !__builtin_mul_overflow(h, r, &tall) &&
                                !__builtin_mul_overflow(w, r, &wide),
                            OpName("pixel_shuffle"),
                            "expected channels that are a multiple of "
                            "upscale_factor squared, got ",
                            c, " and upscale_factor = ", r);
  const size_t leading = self.sizes().size() - 3;
  const Tensor split = aten::reshape(self, with_last(self.sizes(), {c / square, r, r, h, w}));
  return aten::reshape(permuted(split, leading, {0, 3, 1, 4, 2}),
                       with_last(self.sizes(), {c / square, tall, wide}));
}

Tensor pixel_unshuffle(const Tensor& self, int64_t downscale_factor) {
  check_image("pixel_unshuffle", self);
  const int64_t r = downscale_factor, c = self.size(-3), h = self.size(-2), w = self.size(-1);
  int64_t square = 0, channels = 0;
  check<ErrorKind::Runtime>(h % r == 0 && w % r == 0 && !__builtin_mul_overflow(r, r, &square) &&
                                !__builtin_mul_overflow(c, square, &channels),
                            OpName("pixel_unshuffle"),
                            "expected a height and width that are multiples of "
                            "downscale_factor = ",
                            r, ", got shape ", self.sizes());
  const size_t leading = self.sizes().size() - 3;
  const Tensor split = aten::reshape(self, with_last(self.sizes(), {c, h / r, r, w / r, r}));
  return aten::reshape(permuted(split, leading, {0, 2, 4, 1, 3}),
                       with_last(self.sizes(), {channels, h / r, w / r}));
}

Tensor channel_shuffle(const Tensor& self, int64_t groups) {
  check<ErrorKind::Runtime>(self.dim() >= 3, OpName("channel_shuffle"),
                            "expected input with at least 3 dimensions (batch, "
                            "channels, ...), got shape ",
                            self.sizes());
  check<ErrorKind::Runtime>(self.size(1) % groups == 0, OpName("channel_shuffle"),
                            "expected channels that are a multiple of groups = ", groups, ", got ",
                            self.size(1));
  DimVector split(self.sizes());
  split[1] /= groups;
  split.insert(1, groups);
  return aten::reshape(aten::transpose(aten::reshape(self, split), 1, 2), self.sizes());
}

}  // namespace treadle::composite
