// Random numbers, the same as the CPU's (random_numbers.cuh). Numbers that need the device's
// logarithm, sine and cosine differ from the CPU's in their last digits.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "aten/ops/_random_range_.h"
#include "aten/ops/bernoulli_.h"
#include "aten/ops/cauchy_.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/expand.h"
#include "aten/ops/exponential_.h"
#include "aten/ops/geometric_.h"
#include "aten/ops/log_normal_.h"
#include "aten/ops/normal_.h"
#include "aten/ops/random/cuda/random_numbers.cuh"
#include "aten/ops/to.h"
#include "aten/ops/uniform_.h"

namespace treadle::cuda {
namespace {

// ---- what each element becomes, of number k of the words ----

template <class T>
struct UniformNumber {
  Drawn<T> start, range, end;
  T low;
  __device__ T operator()(const uint32_t* words, int k, int64_t) const {
    const T v = narrowed<T>(start + range * unit<T>(words, k));
    return widened(v) < end ? v : low;  // rounding may have reached the end, which is not part
  }
};

// In each part of a complex number. The imaginary part has no mean.
template <class Part, bool complex>
struct NormalNumber {
  Drawn<Part> mean, std;
  __device__ Part operator()(const uint32_t* words, int k, int64_t) const {
    const Drawn<Part> shift = complex && k % 2 == 1 ? Drawn<Part>(0) : mean;
    return narrowed<Part>(shift + std * normal<Drawn<Part>>(words, k));
  }
};

template <class T>
struct ExponentialNumber {
  Drawn<T> scale;
  __device__ T operator()(const uint32_t* words, int k, int64_t) const {
    return narrowed<T>(scale * log(open_unit<Drawn<T>>(words, k)));
  }
};

template <class T>
struct CauchyNumber {
  double median, sigma;
  __device__ T operator()(const uint32_t* words, int k, int64_t) const {
    const double u = open_unit<Drawn<T>>(words, k);
    return narrowed<T>(static_cast<Drawn<T>>(median + sigma * tan(std::numbers::pi * (u - 0.5))));
  }
};

template <class T>
struct LogNormalNumber {
  double mean, std;
  __device__ T operator()(const uint32_t* words, int k, int64_t) const {
    const double exponent = mean + std * static_cast<double>(normal<Drawn<T>>(words, k));
    return narrowed<T>(static_cast<Drawn<T>>(exp(exponent)));
  }
};

// The number of trials up to the first success, from 1 on. A number beyond the integer's range
// becomes its largest value.
template <class T>
struct GeometricNumber {
  double scale;
  __device__ T operator()(const uint32_t* words, int k, int64_t) const {
    const double trials = floor(log(open_unit<double>(words, k)) * scale) + 1;
    if constexpr (std::is_integral_v<T>) {
      constexpr T kMax = std::numeric_limits<T>::max();
      if (trials > static_cast<double>(kMax)) return kMax;
    }
    return element_from<T>(trials);
  }
};

// Words up to `last`, among 2^32, count as true; with `never`, none does.
template <class T>
struct BernoulliNumber {
  uint32_t last;
  bool never;
  T yes, no;
  __device__ T operator()(const uint32_t* words, int k, int64_t) const {
    return !never && words[k] <= last ? yes : no;
  }
};

__device__ const char kBernoulli[] = "bernoulli_";

template <class T>
struct BernoulliOfTensor {
  const double* probabilities;
  T yes, no;
  FaultPlace fault;
  __device__ T operator()(const uint32_t* words, int k, int64_t i) const {
    const double p = probabilities[i];
    if (!(p >= 0 && p <= 1)) record_wrong_number(fault, kProbabilities, kBernoulli, p);
    return words[k] * 0x1p-32 < p ? yes : no;
  }
};

template <class T>
struct NumberInRange {
  uint64_t low, range;  // a range of 0 stands for 2^64
  __device__ T operator()(const uint32_t* words, int k, int64_t) const {
    const uint64_t bits = word_pair(words, k);
    // The high half of a 128-bit product is uniform in [0, range) to within range / 2^64.
    const uint64_t in_range = range == 0 ? bits : __umul64hi(bits, range);
    return element_from<T>(static_cast<int64_t>(low + in_range));
  }
};

// ---- operators ----

template <class T>
void uniform_cuda(const Tensor& self, double from, double to, const Generator& generator) {
  using R = Drawn<T>;
  // A complex number has two parts of their own.
  constexpr bool complex = is_complex_type<T>;
  using Part = std::conditional_t<complex, R, T>;
  const Part low = Scalar(from).checked_to<Part>("uniform_"),
             high = Scalar(to).checked_to<Part>("uniform_");
  const R start = static_cast<R>(low), range = static_cast<R>(high) - start;
  check<ErrorKind::Runtime>(std::isfinite(range), OpName("uniform_"), "expected a range that ",
                            self.dtype(), " holds, got from = ", from, ", to = ", to);
  generate<kPerBlock<T>>("uniform_", self, generator, static_cast<Part*>(self.data()),
                         UniformNumber<Part>{start, range, static_cast<R>(high), low},
                         complex ? 2 : 1);
}

// A complex number has half of the variance in each part.
template <class T>
void normal_cuda(const Tensor& self, double mean, double std, const Generator& generator) {
  using R = Drawn<T>;
  constexpr bool complex = is_complex_type<T>;
  using Part = std::conditional_t<complex, R, T>;
  const double scale = complex ? std * std::numbers::sqrt2 / 2 : std;
  generate<kPerBlock<T>>("normal_", self, generator, static_cast<Part*>(self.data()),
                         NormalNumber<Part, complex>{static_cast<R>(mean), static_cast<R>(scale)},
                         complex ? 2 : 1);
}

template <class T>
void exponential_cuda(const Tensor& self, double lambd, const Generator& generator) {
  generate<kPerBlock<T>>("exponential_", self, generator, self.data_as<T>(),
                         ExponentialNumber<T>{static_cast<Drawn<T>>(-1 / lambd)});
}

template <class T>
void cauchy_cuda(const Tensor& self, double median, double sigma, const Generator& generator) {
  generate<kPerBlock<T>>("cauchy_", self, generator, self.data_as<T>(),
                         CauchyNumber<T>{median, sigma});
}

template <class T>
void log_normal_cuda(const Tensor& self, double mean, double std, const Generator& generator) {
  generate<kPerBlock<T>>("log_normal_", self, generator, self.data_as<T>(),
                         LogNormalNumber<T>{mean, std});
}

template <class T>
void geometric_cuda(const Tensor& self, double p, const Generator& generator) {
  generate<kPerBlock<double>>("geometric_", self, generator, self.data_as<T>(),
                              GeometricNumber<T>{p < 1 ? 1 / std::log1p(-p) : 0});
}

template <class T>
void bernoulli_cuda(const Tensor& self, double p, const Generator& generator) {
  const auto yes_words = static_cast<int64_t>(p * 0x1p32);
  generate<4>("bernoulli_", self, generator, self.data_as<T>(),
              BernoulliNumber<T>{static_cast<uint32_t>(yes_words - 1), yes_words == 0,
                                 static_cast<T>(1), static_cast<T>(0)});
}

template <class T>
void bernoulli_tensor_cuda(const Tensor& self, const Tensor& p, const Generator& generator) {
  check<ErrorKind::Runtime>(p.is_floating_point(), OpName("bernoulli_"),
                            "expected floating probabilities, got ", p.dtype());
  check<ErrorKind::Runtime>(p.device() == self.device(), OpName("bernoulli_"),
                            "expected probabilities on ", self.device(), ", as self, got ",
                            p.device());
  const Tensor wide =
      aten::contiguous(aten::expand(aten::to(p, ScalarType::Float64), self.sizes()));
  generate<4>("bernoulli_", self, generator, self.data_as<T>(),
              BernoulliOfTensor<T>{wide.data_as<double>(), static_cast<T>(1), static_cast<T>(0),
                                   faults().place(self.device().index)});
}

template <class T>
void random_range_cuda(const Tensor& self, int64_t low, int64_t high, const Generator& generator) {
  const auto first = static_cast<uint64_t>(low);
  generate<2>("random_", self, generator, self.data_as<T>(),
              NumberInRange<T>{first, static_cast<uint64_t>(high) - first + 1});
}

#define TREADLE_RANDOM(op, kernel)                               \
  const auto kernel##_registered = register_cuda<aten::ops::op>( \
      DeclaredTypes<aten::ops::op>(), []<class T>() { return &kernel<T>; }, #kernel)
TREADLE_RANDOM(uniform_, uniform_cuda);
TREADLE_RANDOM(normal_, normal_cuda);
TREADLE_RANDOM(exponential_, exponential_cuda);
TREADLE_RANDOM(cauchy_, cauchy_cuda);
TREADLE_RANDOM(log_normal_, log_normal_cuda);
TREADLE_RANDOM(geometric_, geometric_cuda);
TREADLE_RANDOM(bernoulli__float, bernoulli_cuda);
TREADLE_RANDOM(bernoulli__Tensor, bernoulli_tensor_cuda);
TREADLE_RANDOM(_random_range_, random_range_cuda);
#undef TREADLE_RANDOM

}  // namespace
}  // namespace treadle::cuda
