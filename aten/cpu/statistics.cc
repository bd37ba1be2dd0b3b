// var and std: two passes over fixed pieces (mean, then squared distances from it), pieces joined in order.
#include <cmath>

#include "aten/cpu/dim_slices.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/permute.h"
#include "aten/ops/std.h"
#include "aten/ops/var.h"

namespace treadle::cpu {
namespace {

// The type that means are computed in.
template <class T> struct WideType { using type = double; };
template <class R> struct WideType<std::complex<R>> { using type = std::complex<double>; };

template <class Mean>
struct Moments {
  Mean mean = Mean(0);
  double squares = 0;  // sum of squared distances from the mean
  int64_t count = 0;
};

inline double squared(double v) { return v * v; }
inline double squared(std::complex<double> v) { return v.real() * v.real() + v.imag() * v.imag(); }

template <class T>
Moments<typename WideType<T>::type> moments_of(const T* values, int64_t count) {
  using Mean = typename WideType<T>::type;
  using C = compute_type<T>;
  constexpr int kLanes = 8;
  const auto folded = [&](auto zero, auto&& term) {
    decltype(zero) lanes[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes[l] += term(Mean(static_cast<C>(values[i + l])));
    }
    for (int l = 0; i < count; ++i, ++l) lanes[l] += term(Mean(static_cast<C>(values[i])));
    for (int l = 1; l < kLanes; ++l) zero += lanes[l];
    return zero + lanes[0];
  };
  Moments<Mean> m;
  m.count = count;
  m.mean = folded(Mean(0), [](Mean v) { return v; }) / static_cast<double>(count);
  m.squares = folded(0.0, [&](Mean v) { return squared(v - m.mean); });
  return m;
}

template <class Mean>
Moments<Mean> joined(const Moments<Mean>& a, const Moments<Mean>& b) {
  if (a.count == 0) return b;
  const Mean distance = b.mean - a.mean;
  const double count = static_cast<double>(a.count + b.count);
  const double share = static_cast<double>(b.count) / count;
  return {a.mean + distance * share, a.squares + b.squares + squared(distance) * static_cast<double>(a.count) * share,
          a.count + b.count};
}

// Reduced dimensions last, in memory order, so that each result is made from one run of elements.
Tensor reduced_last(const Tensor& self, const DimVector& reduced) {
  DimVector order;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (std::find(reduced.begin(), reduced.end(), d) == reduced.end()) order.push_back(d);
  }
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (std::find(reduced.begin(), reduced.end(), d) != reduced.end()) order.push_back(d);
  }
  return aten::contiguous(aten::permute(self, order));
}

template <class T>
void variance(const Tensor& self, OptionalIntList dims, const std::optional<Scalar>& correction, bool root, const Tensor& out) {
  using Mean = typename WideType<T>::type;
  using R = real_type<T>;
  if (out.numel() == 0) return;
  const DimVector reduced = wrap_dims(root ? "std" : "var", dims, self.dim(), true);
  const Tensor input = reduced_last(self, reduced);
  const int64_t length = input.numel() / out.numel();
  const T* const from = input.data_as<T>();
  R* const to = out.data_as<R>();
  const double divisor = std::max(0.0, static_cast<double>(length) - (correction ? correction->to<double>() : 1.0));
  const auto finish = [&](int64_t i, const Moments<Mean>& m) {
    const double value = m.squares / divisor;
    to[i] = static_cast<R>(static_cast<compute_type<R>>(root ? std::sqrt(value) : value));
  };
  if (length <= kGrain) {
    parallel_for(out.numel(), grain_for(length), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) finish(i, length ? moments_of(from + i * length, length) : Moments<Mean>());
    });
    return;
  }
  const int64_t pieces = (length + kGrain - 1) / kGrain;
  std::vector<Moments<Mean>> parts(out.numel() * pieces);
  parallel_chunks(out.numel() * pieces, [&](int64_t part) {
    const int64_t first = part % pieces * kGrain;
    parts[part] = moments_of(from + part / pieces * length + first, std::min(kGrain, length - first));
  });
  for (int64_t i = 0; i < out.numel(); ++i) {
    Moments<Mean> m;
    for (int64_t p = 0; p < pieces; ++p) m = joined(m, parts[i * pieces + p]);
    finish(i, m);
  }
}

template <class T>
void var_cpu(const Tensor& self, OptionalIntList dim, const std::optional<Scalar>& correction, bool /*keepdim*/, const Tensor& out) {
  variance<T>(self, dim, correction, false, out);
}
template <class T>
void std_cpu(const Tensor& self, OptionalIntList dim, const std::optional<Scalar>& correction, bool /*keepdim*/, const Tensor& out) {
  variance<T>(self, dim, correction, true, out);
}

const auto var_registered =
    register_kernels<aten::ops::var_correction, DeviceType::CPU>([]<class T>() { return &var_cpu<T>; }, "var_cpu");
const auto std_registered =
    register_kernels<aten::ops::std_correction, DeviceType::CPU>([]<class T>() { return &std_cpu<T>; }, "std_cpu");

}  // namespace
}  // namespace treadle::cpu
