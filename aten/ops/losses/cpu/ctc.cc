// Connectionist temporal classification: the negative log probability that the frames spell the
// target, over all alignments (Graves et al., 2006), by the forward-backward recursion over
// logarithms.
//
// The target y_1 .. y_S with blanks between has positions 0 .. 2S, with blanks at the even ones.
// alpha[t][s] is the probability that the first frames end at position s in frame t. A step stays,
// moves one position, or skips the blank between two different labels. beta is the same from the
// end. The posterior of class c in frame t sums exp(alpha + beta - log p + loss) over the positions
// of c, and is minus the gradient of the loss with respect to log p.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "aten/backend/cpu/read_once.h"
#include "aten/ops/_ctc_loss.h"
#include "aten/ops/_ctc_loss_backward.h"
#include "aten/ops/contiguous.h"
#include "core/base/error.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

template <class T>
constexpr T kNever = -std::numeric_limits<T>::infinity();

template <class T>
T log_add(T a, T b) {
  const T most = std::max(a, b);
  return most == kNever<T> ? most : most + std::log1p(std::exp(std::min(a, b) - most));
}

// The classes at the positions of each sample's target, with every label checked.
std::vector<std::vector<int64_t>> all_places(const Tensor& targets, IntList lengths, int64_t blank,
                                             int64_t classes) {
  std::vector<std::vector<int64_t>> all(lengths.size());
  int64_t first = 0;
  for (size_t n = 0; n < lengths.size(); ++n) {
    const bool rows = targets.dim() == 2;
    if (rows) first = static_cast<int64_t>(n) * targets.stride(0);
    const int64_t step = rows ? targets.stride(1) : targets.stride(0);
    all[n].push_back(blank);
    for (int64_t s = 0; s < lengths[n]; ++s) {
      const int64_t label = read_once(targets.data_as<int64_t>() + first + s * step);
      check<ErrorKind::Index>(label >= 0 && label < classes, OpName("ctc_loss"),
                              "expected targets in [0, ", classes, "), got ", label);
      all[n].push_back(label);
      all[n].push_back(blank);
    }
    if (!rows) first += lengths[n] * step;
  }
  return all;
}

// Whether a path may reach position s from position s - 2.
bool skips(const std::vector<int64_t>& places, int64_t s, int64_t blank) {
  return s >= 2 && places[s] != blank && places[s] != places[s - 2];
}

template <class T>
void ctc_loss_cpu(const Tensor& log_probs, const Tensor& targets, IntList input_lengths,
                  IntList target_lengths, int64_t blank, bool /*zero_infinity*/, const Tensor& loss,
                  const Tensor& log_alpha) {
  const auto all = all_places(targets, target_lengths, blank, log_probs.size(2));
  const int64_t width = log_alpha.size(2), steps = log_alpha.size(1);
  const int64_t over_t = log_probs.stride(0), over_n = log_probs.stride(1),
                over_c = log_probs.stride(2);
  parallel_for(loss.numel(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const std::vector<int64_t>& places = all[n];
      const int64_t count = static_cast<int64_t>(places.size()), frames = input_lengths[n];
      const T* x = log_probs.data_as<T>() + n * over_n;
      T* alpha = log_alpha.data_as<T>() + n * steps * width;
      std::fill_n(alpha, steps * width, kNever<T>);
      if (frames == 0) {
        loss.data_as<T>()[n] = count == 1 ? T(0) : -kNever<T>;
        continue;
      }
      for (int64_t s = 0; s < std::min<int64_t>(2, count); ++s) alpha[s] = x[places[s] * over_c];
      for (int64_t t = 1; t < frames; ++t) {
        const T* before = alpha + (t - 1) * width;
        T* now = alpha + t * width;
        for (int64_t s = 0; s < count; ++s) {
          T sum = before[s];
          if (s >= 1) sum = log_add(sum, before[s - 1]);
          if (skips(places, s, blank)) sum = log_add(sum, before[s - 2]);
          now[s] = sum + x[t * over_t + places[s] * over_c];
        }
      }
      const T* last = alpha + (frames - 1) * width;
      const T ends = count == 1 ? last[0] : log_add(last[count - 1], last[count - 2]);
      loss.data_as<T>()[n] = -ends;
    }
  });
}

template <class T>
void ctc_loss_backward_cpu(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                           IntList input_lengths, IntList target_lengths, const Tensor& loss,
                           const Tensor& log_alpha, int64_t blank, bool zero_infinity,
                           const Tensor& out) {
  const auto all = all_places(targets, target_lengths, blank, log_probs.size(2));
  const Tensor alphas = aten::contiguous(log_alpha), losses = aten::contiguous(loss),
               grads = aten::contiguous(grad);
  const int64_t width = alphas.size(2), steps = alphas.size(1);
  const int64_t samples = out.size(1), classes = out.size(2);
  const int64_t over_t = log_probs.stride(0), over_n = log_probs.stride(1),
                over_c = log_probs.stride(2);
  std::fill_n(out.data_as<T>(), out.numel(), T(0));
  parallel_for(samples, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const std::vector<int64_t>& places = all[n];
      const int64_t count = static_cast<int64_t>(places.size()), frames = input_lengths[n];
      const T total = losses.data_as<T>()[n], g = grads.data_as<T>()[n];
      const bool impossible = total == -kNever<T>;
      if (impossible && zero_infinity) continue;
      const T* x = log_probs.data_as<T>() + n * over_n;
      const T* alpha = alphas.data_as<T>() + n * steps * width;
      std::vector<T> beta(static_cast<size_t>(count), kNever<T>), next(beta);
      for (int64_t t = frames - 1; t >= 0; --t) {
        T* to = out.data_as<T>() + (t * samples + n) * classes;
        if (impossible) {  // no alignment: the loss is infinite and has no gradient
          std::fill_n(to, classes, std::numeric_limits<T>::quiet_NaN());
          continue;
        }
        for (int64_t s = 0; s < count; ++s) {
          T sum = kNever<T>;
          if (t == frames - 1) {
            if (s + 2 >= count) sum = 0;
          } else {
            sum = next[s];
            if (s + 1 < count) sum = log_add(sum, next[s + 1]);
            if (s + 2 < count && skips(places, s + 2, blank)) sum = log_add(sum, next[s + 2]);
          }
          // Without the frame's own probability, which alpha has.
          const T both = alpha[t * width + s] + sum;
          if (both != kNever<T>) to[places[s]] -= std::exp(both + total) * g;
          beta[s] = sum + x[t * over_t + places[s] * over_c];
        }
        std::swap(beta, next);
      }
    }
  });
}

const auto registered = register_kernels<aten::ops::_ctc_loss, DeviceType::CPU>(
    []<class T>() { return &ctc_loss_cpu<T>; }, "ctc_loss_cpu");
const auto backward_registered = register_kernels<aten::ops::_ctc_loss_backward, DeviceType::CPU>(
    []<class T>() { return &ctc_loss_backward_cpu<T>; }, "ctc_loss_backward_cpu");

}  // namespace
}  // namespace treadle::cpu
