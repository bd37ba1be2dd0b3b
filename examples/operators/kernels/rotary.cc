// rotary: pairs of features turned by the angles of their positions.
//
// SPDX-License-Identifier: Apache-2.0
#include "extra_ops/ops/rotary.h"

#include "aten/engine/structured.h"
#include "aten/ops/add.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/mul.h"
#include "aten/ops/slice.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum_to_size.h"
#include "core/threads/parallel.h"
#include "extra_ops/ops/rotary_angles_backward.h"

namespace extra_ops {

namespace shape {

TensorSpec rotary(const char* op, const Tensor& self, const Tensor& cos, const Tensor& sin) {
  check<ErrorKind::Runtime>(self.dim() >= 2 && self.size(-1) % 2 == 0, OpName(op),
                            "expected self of shape (..., length, dim) with an even dim, got ",
                            self.sizes());
  const int64_t length = self.size(-2), half = self.size(-1) / 2;
  const auto require = [&](const char* name, const Tensor& angles) {
    const bool fits = angles.dim() == 2 && angles.size(0) == length && angles.size(1) == half;
    check<ErrorKind::Runtime>(fits, OpName(op), "expected ", name, " of shape (", length, ", ",
                              half, "), got ", angles.sizes());
  };
  require("cos", cos);
  require("sin", sin);
  return {self.sizes(), self.dtype()};
}

}  // namespace shape

namespace {

// Where the two features of pair i are in a row.
struct Pairs {
  int64_t half;
  bool interleaved;
  int64_t first(int64_t i) const { return interleaved ? 2 * i : i; }
  int64_t second(int64_t i) const { return interleaved ? 2 * i + 1 : i + half; }
};

template <class T>
void rotary_cpu(const Tensor& self, const Tensor& cos, const Tensor& sin, bool interleaved,
                const Tensor& out) {
  using C = compute_type<T>;
  const Tensor x = aten::contiguous(self), c = aten::contiguous(cos), s = aten::contiguous(sin);
  const int64_t length = self.size(-2), dim = self.size(-1);
  if (self.numel() == 0) return;
  const Pairs pairs{dim / 2, interleaved};
  const T* from = x.data_as<T>();
  const T* cosines = c.data_as<T>();
  const T* sines = s.data_as<T>();
  T* to = out.data_as<T>();
  const int64_t grain = std::max<int64_t>(1, 32768 / dim);
  parallel_for(self.numel() / dim, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t angles = row % length * pairs.half;
      for (int64_t i = 0; i < pairs.half; ++i) {
        const C cosine = static_cast<C>(cosines[angles + i]);
        const C sine = static_cast<C>(sines[angles + i]);
        const C a = static_cast<C>(from[row * dim + pairs.first(i)]);
        const C b = static_cast<C>(from[row * dim + pairs.second(i)]);
        to[row * dim + pairs.first(i)] = static_cast<T>(a * cosine - b * sine);
        to[row * dim + pairs.second(i)] = static_cast<T>(b * cosine + a * sine);
      }
    }
  });
}
const auto registered = register_kernels<ops::rotary, DeviceType::CPU>(
    []<class T>() { return &rotary_cpu<T>; }, "rotary_cpu");

// The first and the second features of all pairs.
std::pair<Tensor, Tensor> split(const Tensor& x, bool interleaved) {
  const int64_t dim = x.size(-1);
  if (interleaved) return {aten::slice(x, -1, 0, dim, 2), aten::slice(x, -1, 1, dim, 2)};
  return {aten::slice(x, -1, 0, dim / 2), aten::slice(x, -1, dim / 2, dim)};
}

}  // namespace

namespace composite {

std::tuple<Tensor, Tensor> rotary_angles_backward(const Tensor& grad, const Tensor& self,
                                                  const Tensor& cos, bool interleaved) {
  const auto [g, h] = split(grad, interleaved);
  const auto [a, b] = split(self, interleaved);
  return {aten::sum_to_size(aten::add(aten::mul(g, a), aten::mul(h, b)), cos.sizes()),
          aten::sum_to_size(aten::sub(aten::mul(h, a), aten::mul(g, b)), cos.sizes())};
}

}  // namespace composite

}  // namespace extra_ops
