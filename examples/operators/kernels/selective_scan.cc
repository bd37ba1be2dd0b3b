// selective_scan: a recurrence for each batch entry and channel, with a small state.
//
// Backward runs the recurrence again and keeps its states, then goes through the steps from the
// last to the first. Sums over channels and over the batch are made of parts that do not depend on
// the number of threads.
//
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <vector>

#include "aten/engine/structured.h"
#include "aten/ops/add.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/mul.h"
#include "aten/ops/sum.h"
#include "aten/ops/transpose.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/zeros.h"
#include "core/threads/parallel.h"
#include "extra_ops/ops/selective_scan.h"
#include "extra_ops/ops/selective_scan_backward.h"
#include "extra_ops/ops/selective_scan_forward.h"

namespace extra_ops {

namespace shape {

namespace {
void require(const char* op, const char* name, const Tensor& t, IntList sizes) {
  check<ErrorKind::Runtime>(t.sizes() == sizes, OpName(op), "expected ", name, " of shape ", sizes,
                            ", got ", t.sizes());
}
}  // namespace

TensorSpec selective_scan(const char* op, const Tensor& u, const Tensor& delta, const Tensor& a,
                          const Tensor& b, const Tensor& c) {
  check<ErrorKind::Runtime>(u.dim() == 3, OpName(op),
                            "expected u of shape (batch, channels, length), got ", u.sizes());
  check<ErrorKind::Runtime>(a.dim() == 2, OpName(op), "expected a of shape (channels, state), got ",
                            a.sizes());
  const int64_t batch = u.size(0), channels = u.size(1), length = u.size(2), state = a.size(1);
  require(op, "delta", delta, u.sizes());
  require(op, "a", a, {channels, state});
  require(op, "b", b, {batch, state, length});
  require(op, "c", c, {batch, state, length});
  return {u.sizes(), u.dtype()};
}

std::array<TensorSpec, 5> selective_scan_grad(const char* op, const Tensor& grad, const Tensor& u,
                                              const Tensor& delta, const Tensor& a, const Tensor& b,
                                              const Tensor& c) {
  const TensorSpec result = selective_scan(op, u, delta, a, b, c);
  require(op, "grad", grad, u.sizes());
  const TensorSpec like_b{b.sizes(), b.dtype()};
  return {result, result, TensorSpec{a.sizes(), a.dtype()}, like_b, like_b};
}

}  // namespace shape

namespace {

// (batch, state, length) with the state innermost, as the loops go through it.
Tensor by_step(const Tensor& t) { return aten::contiguous(aten::transpose(t, 1, 2)); }

template <class T>
void selective_scan_forward_cpu(const Tensor& u, const Tensor& delta, const Tensor& a,
                                const Tensor& b, const Tensor& c, const Tensor& out) {
  const Tensor us = aten::contiguous(u), deltas = aten::contiguous(delta), as = aten::contiguous(a),
               bs = by_step(b), cs = by_step(c);
  const int64_t channels = u.size(1), length = u.size(2), state = a.size(1);
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, length * state));
  parallel_for(u.size(0) * channels, grain, [&](int64_t begin, int64_t end) {
    std::vector<T> h(static_cast<size_t>(state));
    for (int64_t row = begin; row < end; ++row) {
      const int64_t steps = row / channels * length * state;
      const T* decay = as.data_as<T>() + row % channels * state;
      const T* b_row = bs.data_as<T>() + steps;
      const T* c_row = cs.data_as<T>() + steps;
      std::fill(h.begin(), h.end(), T(0));
      for (int64_t t = 0; t < length; ++t) {
        const T dt = deltas.data_as<T>()[row * length + t];
        const T input = dt * us.data_as<T>()[row * length + t];
        T y = 0;
        for (int64_t n = 0; n < state; ++n) {
          T& value = h[static_cast<size_t>(n)];
          value = std::exp(dt * decay[n]) * value + input * b_row[t * state + n];
          y += c_row[t * state + n] * value;
        }
        out.data_as<T>()[row * length + t] = y;
      }
    }
  });
}
const auto forward_registered = register_kernels<ops::selective_scan_forward, DeviceType::CPU>(
    []<class T>() { return &selective_scan_forward_cpu<T>; }, "selective_scan_forward_cpu");

// Channels whose parts of the gradients of b and c are summed by one piece of work.
constexpr int64_t kGroup = 16;

template <class T>
void selective_scan_backward_cpu(const Tensor& grad, const Tensor& u, const Tensor& delta,
                                 const Tensor& a, const Tensor& b, const Tensor& c,
                                 const Tensor& grad_u, const Tensor& grad_delta,
                                 const Tensor& grad_a, const Tensor& grad_b, const Tensor& grad_c) {
  const Tensor gs = aten::contiguous(grad), us = aten::contiguous(u),
               deltas = aten::contiguous(delta), as = aten::contiguous(a), bs = by_step(b),
               cs = by_step(c);
  const int64_t batch = u.size(0), channels = u.size(1), length = u.size(2), state = a.size(1);
  const int64_t groups = (channels + kGroup - 1) / kGroup;
  // Parts: of a for each batch entry, of b and c for each group of channels.
  const Tensor part_a = aten::zeros({batch, channels, state}, u.dtype());
  const Tensor part_b = aten::zeros({groups, batch, length, state}, u.dtype());
  const Tensor part_c = aten::zeros({groups, batch, length, state}, u.dtype());
  parallel_chunks(batch * groups, [&](int64_t piece) {
    const int64_t entry = piece % batch, group = piece / batch;
    const int64_t steps = entry * length * state;
    const T* b_row = bs.data_as<T>() + steps;
    const T* c_row = cs.data_as<T>() + steps;
    T* gb = part_b.data_as<T>() + group * batch * length * state + steps;
    T* gc = part_c.data_as<T>() + group * batch * length * state + steps;
    std::vector<T> h(static_cast<size_t>((length + 1) * state));  // h[0] is before the first step
    std::vector<T> dh(static_cast<size_t>(state));
    for (int64_t ch = group * kGroup; ch < std::min(channels, (group + 1) * kGroup); ++ch) {
      const int64_t row = entry * channels + ch;
      const T* decay = as.data_as<T>() + ch * state;
      T* ga = part_a.data_as<T>() + row * state;
      std::fill(h.begin(), h.begin() + state, T(0));
      for (int64_t t = 0; t < length; ++t) {
        const T dt = deltas.data_as<T>()[row * length + t];
        const T input = dt * us.data_as<T>()[row * length + t];
        const T* before = h.data() + t * state;
        T* after = h.data() + (t + 1) * state;
        for (int64_t n = 0; n < state; ++n)
          after[n] = std::exp(dt * decay[n]) * before[n] + input * b_row[t * state + n];
      }
      std::fill(dh.begin(), dh.end(), T(0));
      for (int64_t t = length - 1; t >= 0; --t) {
        const T dt = deltas.data_as<T>()[row * length + t];
        const T ut = us.data_as<T>()[row * length + t];
        const T g = gs.data_as<T>()[row * length + t];
        const T* before = h.data() + t * state;
        const T* after = h.data() + (t + 1) * state;
        T du = 0, ddelta = 0;
        for (int64_t n = 0; n < state; ++n) {
          T& d = dh[static_cast<size_t>(n)];
          const T bt = b_row[t * state + n];
          const T shrink = std::exp(dt * decay[n]);
          d += g * c_row[t * state + n];
          gc[t * state + n] += g * after[n];
          gb[t * state + n] += d * dt * ut;
          du += d * dt * bt;
          ddelta += d * (before[n] * shrink * decay[n] + bt * ut);
          ga[n] += d * before[n] * shrink * dt;
          d *= shrink;
        }
        grad_u.data_as<T>()[row * length + t] = du;
        grad_delta.data_as<T>()[row * length + t] = ddelta;
      }
    }
  });
  aten::sum_out(part_a, IntList{0}, false, std::nullopt, grad_a);
  aten::sum_out(aten::transpose(part_b, 2, 3), IntList{0}, false, std::nullopt, grad_b);
  aten::sum_out(aten::transpose(part_c, 2, 3), IntList{0}, false, std::nullopt, grad_c);
}
const auto backward_registered = register_kernels<ops::selective_scan_backward, DeviceType::CPU>(
    []<class T>() { return &selective_scan_backward_cpu<T>; }, "selective_scan_backward_cpu");

}  // namespace

namespace composite {

Tensor selective_scan(const Tensor& u, const Tensor& delta, const Tensor& a, const Tensor& b,
                      const Tensor& c, const Tensor& d) {
  const Tensor y = extra_ops::selective_scan_forward(u, delta, a, b, c);
  if (!d.defined()) return y;
  check<ErrorKind::Runtime>(d.dim() == 1 && d.size(0) == u.size(1), OpName("selective_scan"),
                            "expected d of shape (", u.size(1), "), got ", d.sizes());
  return aten::add(y, aten::mul(aten::unsqueeze(d, 1), u));
}

}  // namespace composite

}  // namespace extra_ops
