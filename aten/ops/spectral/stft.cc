// stft and istft: transforms of overlapping frames of a signal, and their inverse.
//
// Frames are a view of the signal with one more dimension. istft adds them up where they overlap
// and divides by the sum of the windows.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/stft.h"
#include "aten/engine/named_errors.h"
#include "aten/ops/_fft_c2c.h"
#include "aten/ops/_fft_c2r.h"
#include "aten/ops/_fft_r2c.h"
#include "aten/ops/abs.h"
#include "aten/ops/amin.h"
#include "aten/ops/cat.h"
#include "aten/ops/constant_pad_nd.h"
#include "aten/ops/div.h"
#include "aten/ops/expand.h"
#include "aten/ops/fft/arguments.h"
#include "aten/ops/flip.h"
#include "aten/ops/istft.h"
#include "aten/ops/item.h"
#include "aten/ops/mul.h"
#include "aten/ops/narrow.h"
#include "aten/ops/ones.h"
#include "aten/ops/reshape.h"
#include "aten/ops/transpose.h"
#include "aten/ops/unfold.h"
#include "aten/ops/unfold_backward.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/view_as_real.h"

namespace treadle::composite {
namespace {

using OptInt = std::optional<int64_t>;
using OptBool = std::optional<bool>;

// Sizes of the frames, checked.
struct Frames {
  int64_t size, hop, window;

  Frames(const char* op, int64_t n_fft, OptInt hop_length, OptInt win_length, const Tensor& window)
      : size(n_fft), hop(hop_length.value_or(n_fft / 4)), window(win_length.value_or(n_fft)) {
    check<ErrorKind::Runtime>(size > 0, OpName(op), "expected n_fft > 0, got n_fft = ", size);
    check<ErrorKind::Runtime>(hop > 0, OpName(op),
                              "expected hop_length > 0, got hop_length = ", hop);
    check<ErrorKind::Runtime>(this->window > 0 && this->window <= size, OpName(op),
                              "expected win_length in [1, n_fft = ", size,
                              "], got win_length = ", this->window);
    if (!window.defined()) return;
    check<ErrorKind::Runtime>(window.dim() == 1 && window.size(0) == this->window, OpName(op),
                              "expected a window of shape (", this->window,
                              ",), as win_length says, got ", window.sizes());
    check<ErrorKind::Runtime>(is_floating(window.dtype()) || window.is_complex(), OpName(op),
                              "expected a window of a floating or complex dtype, got ",
                              name_of(window.dtype()));
  }

  // The window, or ones, in the middle of a frame.
  Tensor padded(const char* op, const Tensor& window_given, const Tensor& like) const {
    const Tensor values = window_given.defined() ? fft_input(op, window_given, false)
                                                 : aten::ones({window}, to_real(like.dtype()),
                                                              std::nullopt, like.device());
    const int64_t before = (size - window) / 2;
    return size == window ? values
                          : aten::constant_pad_nd(values, {before, size - window - before});
  }
};

// `count` more elements on both sides of (batch, length), as `mode` says.
Tensor padded_signal(const Tensor& signal, int64_t count, std::string_view mode) {
  const int64_t length = signal.size(1);
  if (count == 0) return signal;
  if (mode == "constant") return aten::constant_pad_nd(signal, {count, count});
  check<ErrorKind::Runtime>(length > 0, OpName("stft"),
                            "expected a signal of at least 1 element, got ", signal.sizes());
  if (mode == "replicate") {
    const auto edge = [&](int64_t at) {
      return aten::expand(aten::narrow(signal, 1, at, 1), {signal.size(0), count});
    };
    return aten::cat(std::vector<Tensor>{edge(0), signal, edge(length - 1)}, 1);
  }
  const bool circular = mode == "circular";
  check<ErrorKind::Runtime>(count < length || (circular && count == length), OpName("stft"),
                            "expected a signal longer than the ", count,
                            " elements added on each side, got length ", length);
  const auto part = [&](int64_t start) {
    const Tensor values = aten::narrow(signal, 1, start, count);
    return circular ? values : aten::flip(values, {1});
  };
  return aten::cat(std::vector<Tensor>{part(circular ? length - count : 1), signal,
                                       part(circular ? 0 : length - 1 - count)},
                   1);
}

Tensor transform_frames(const Tensor& self, const Frames& frames, const Tensor& window_given,
                        bool normalized, OptBool onesided, OptBool return_complex) {
  const bool complex = self.is_complex() || (window_given.defined() && window_given.is_complex());
  const bool half = onesided.value_or(!complex);
  check<ErrorKind::Runtime>(!(half && complex), OpName("stft"),
                            "expected onesided = False for a complex signal or window, got "
                            "onesided = True");
  check<ErrorKind::Runtime>(return_complex.has_value() || complex, OpName("stft"),
                            "expected return_complex to be given for a real signal, got None;"
                            " True is what a program wants that views the result as complex");
  const int64_t length = self.size(1);
  check<ErrorKind::Runtime>(frames.size <= length, OpName("stft"), "expected n_fft of at most the ",
                            length, " elements of the padded signal, got n_fft = ", frames.size);
  const Tensor window = frames.padded("stft", window_given, self);
  const Tensor pieces = aten::mul(aten::unfold(self, 1, frames.size, frames.hop), window);
  const int64_t division = static_cast<int64_t>(normalized ? FftNorm::kRoot : FftNorm::kNone);
  const Tensor spectrum =
      half ? aten::_fft_r2c(pieces, {2}, division, true)
           : aten::_fft_c2c(fft_input("stft", pieces, true), {2}, division, true);
  const Tensor result = aten::transpose(spectrum, 1, 2);
  return return_complex.value_or(true) ? result : aten::view_as_real(result);
}

}  // namespace

Tensor stft(const Tensor& self, int64_t n_fft, OptInt hop_length, OptInt win_length,
            const Tensor& window, bool center, std::string_view pad_mode, bool normalized,
            OptBool onesided, OptBool return_complex, OptBool align_to_window) {
  check<ErrorKind::Runtime>(self.dim() == 1 || self.dim() == 2, OpName("stft"),
                            "expected a signal of shape (length,) or (batch, length), got ",
                            self.sizes());
  check<ErrorKind::Runtime>(!(center && align_to_window), OpName("stft"),
                            "expected align_to_window = None with center = True, got ",
                            align_to_window);
  check<ErrorKind::Runtime>(is_floating(self.dtype()) || self.is_complex(), OpName("stft"),
                            "expected a signal of a floating or complex dtype, got ",
                            name_of(self.dtype()));
  const Frames frames("stft", n_fft, hop_length, win_length, window);
  Tensor signal = fft_input("stft", self, false);
  if (self.dim() == 1) signal = aten::unsqueeze(signal, 0);
  if (center) signal = padded_signal(signal, n_fft / 2, pad_mode);
  if (!center && align_to_window.value_or(false)) {
    // Frames begin where the window does, not where the zeros around it do.
    const int64_t before = (frames.size - frames.window) / 2;
    signal = aten::constant_pad_nd(signal, {before, frames.size - frames.window - before});
  }
  const Tensor result =
      transform_frames(signal, frames, window, normalized, onesided, return_complex);
  if (self.dim() == 2) return result;
  return aten::reshape(result, result.sizes().slice(1));
}

Tensor istft(const Tensor& self, int64_t n_fft, OptInt hop_length, OptInt win_length,
             const Tensor& window_given, bool center, bool normalized, OptBool onesided,
             OptInt length, bool return_complex) {
  check<ErrorKind::Runtime>(self.is_complex(), OpName("istft"), "expected a complex tensor, got ",
                            name_of(self.dtype()));
  check<ErrorKind::Runtime>(
      (self.dim() == 2 || self.dim() == 3) && self.numel() > 0, OpName("istft"),
      "expected a tensor of shape (frequencies, frames) or (batch, frequencies, frames) "
      "with at least 1 element, got ",
      self.sizes());
  check<ErrorKind::Runtime>(!length || *length >= 0, OpName("istft"),
                            "expected length >= 0, got length = ", length);
  const Frames frames("istft", n_fft, hop_length, win_length, window_given);
  const Tensor spectrum = aten::transpose(self.dim() == 2 ? aten::unsqueeze(self, 0) : self, 1, 2);
  const int64_t count = spectrum.size(1);
  const bool half = onesided.value_or(spectrum.size(2) != frames.size);
  check<ErrorKind::Runtime>(spectrum.size(2) == (half ? frames.size / 2 + 1 : frames.size),
                            OpName("istft"), "expected ", half ? frames.size / 2 + 1 : frames.size,
                            " frequencies for n_fft = ", frames.size, ", got ", spectrum.size(2));
  check<ErrorKind::Runtime>(!(half && return_complex), OpName("istft"),
                            "expected onesided = False for a complex result, got True");
  check<ErrorKind::Runtime>(return_complex || !window_given.defined() || !window_given.is_complex(),
                            OpName("istft"), "expected a real window for a real result, got ",
                            window_given.defined() ? name_of(window_given.dtype()) : "None");
  const int64_t division = static_cast<int64_t>(normalized ? FftNorm::kRoot : FftNorm::kCount);
  // A real signal is that of the first half of the frequencies, whatever the others are.
  const Tensor first = half ? spectrum : aten::narrow(spectrum, 2, 0, frames.size / 2 + 1);
  const Tensor pieces = return_complex ? aten::_fft_c2c(spectrum, {2}, division, false)
                                       : aten::_fft_c2r(first, {2}, division, frames.size, false);
  const Tensor window = frames.padded("istft", window_given, pieces);

  const __int128 covered = static_cast<__int128>(frames.hop) * (count - 1) + frames.size;
  check<ErrorKind::Runtime>(covered < (int64_t{1} << 60), OpName("istft"),
                            "expected a signal below 2^60 elements, got hop_length = ", frames.hop,
                            " and ", count, " frames");
  const auto total = static_cast<int64_t>(covered);
  const auto added = [&](const Tensor& values) {
    return aten::unfold_backward(values, {values.size(0), total}, 1, frames.size, frames.hop);
  };
  Tensor signal = added(aten::mul(pieces, window));
  const Tensor energy = aten::mul(window, window);
  Tensor envelope = added(aten::expand(energy, {1, count, frames.size}));

  const int64_t start = center ? frames.size / 2 : 0;
  const int64_t available = std::max<int64_t>(0, total - 2 * start);
  const int64_t wanted = length.value_or(available);
  const int64_t taken = std::min(wanted, total - start);
  signal = aten::narrow(signal, 1, start, taken);
  envelope = aten::narrow(envelope, 1, start, taken);
  if (taken > 0 && !self.is_meta()) {
    const double least = aten::item(aten::amin(aten::abs(envelope), IntList())).to<double>();
    check<ErrorKind::Runtime>(least > 1e-11, OpName("istft"),
                              "expected windows that cover every point of the signal, got "
                              "one where they add up to ",
                              least);
  }
  signal = aten::div(signal, envelope);
  if (wanted > taken) {
    signal = named("istft", [&] { return aten::constant_pad_nd(signal, {0, wanted - taken}); });
  }
  return self.dim() == 2 ? aten::reshape(signal, {wanted}) : signal;
}

}  // namespace treadle::composite
