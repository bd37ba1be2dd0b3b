// Fourier transforms as cuFFT is asked for them: the geometry of plans, what is copied before and
// behind, scales. A library that follows the definition takes cuFFT's place, and the CPU's kernels
// say what is right.
#include <gtest/gtest.h>

#include <complex>
#include <map>
#include <numbers>

#include "aten/cuda/kernel_calls.h"
#include "aten/cuda/kernels/cufft.h"
#include "aten/cuda/testing_device.h"
#include "aten/ops/_fft_c2c.h"
#include "aten/ops/_fft_c2r.h"
#include "aten/ops/_fft_r2c.h"
#include "aten/ops/allclose.h"
#include "aten/ops/clone.h"
#include "aten/ops/narrow.h"
#include "aten/ops/permute.h"
#include "aten/ops/randn.h"

namespace treadle::cuda {
namespace {

using Complex = std::complex<double>;

struct Plan {
  std::vector<long long> points;
  cudaDataType from, to;
  int64_t batch;
};
std::map<cufftHandle, Plan>& plans() {
  static std::map<cufftHandle, Plan> plans;
  return plans;
}

// All frequencies of `points` numbers, in each dimension by the definition.
std::vector<Complex> transformed(std::vector<Complex> values, const std::vector<long long>& points,
                                 int direction) {
  int64_t inner = 1;
  for (size_t d = points.size(); d-- > 0;) {
    const int64_t n = points[d];
    std::vector<Complex> next(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t k = static_cast<int64_t>(i) / inner % n;
      for (int64_t j = 0; j < n; ++j) {
        const double angle = direction * 2 * std::numbers::pi * static_cast<double>(j * k % n) / n;
        next[i] += values[i + static_cast<size_t>((j - k) * inner)] * std::polar(1.0, angle);
      }
    }
    values = next;
    inner *= n;
  }
  return values;
}

cufftResult execute(cufftHandle handle, void* input, void* output, int direction) {
  const Plan& p = plans().at(handle);
  int64_t size = 1;
  for (const long long n : p.points) size *= n;
  const int64_t last = p.points.back(), half = last / 2 + 1, half_size = size / last * half;
  auto* const real_in = static_cast<double*>(input);
  auto* const complex_in = static_cast<Complex*>(input);
  for (int64_t b = 0; b < p.batch; ++b) {
    if (p.from == CUDA_C_64F && p.to == CUDA_C_64F) {
      const std::vector<Complex> result =
          transformed({complex_in + b * size, complex_in + (b + 1) * size}, p.points, direction);
      std::copy(result.begin(), result.end(), static_cast<Complex*>(output) + b * size);
    } else if (p.from == CUDA_R_64F) {
      EXPECT_EQ(direction, CUFFT_FORWARD);
      const std::vector<Complex> result =
          transformed({real_in + b * size, real_in + (b + 1) * size}, p.points, direction);
      for (int64_t i = 0; i < half_size; ++i)
        static_cast<Complex*>(output)[b * half_size + i] = result[i / half * last + i % half];
    } else {
      EXPECT_EQ(direction, CUFFT_INVERSE);
      EXPECT_EQ(p.points.size(), 1u);
      Complex* const from = complex_in + b * half;
      EXPECT_EQ(from[0].imag(), 0);
      if (last % 2 == 0) EXPECT_EQ(from[half - 1].imag(), 0);
      std::vector<Complex> whole(from, from + half);
      for (int64_t k = half; k < last; ++k) whole.push_back(std::conj(from[last - k]));
      const std::vector<Complex> result = transformed(whole, p.points, direction);
      for (int64_t i = 0; i < last; ++i)
        static_cast<double*>(output)[b * last + i] = result[i].real();
      std::fill(from, from + half, Complex(-1e9));  // the library writes over it
    }
  }
  return CUFFT_SUCCESS;
}

class Fft : public ::testing::Test {
 protected:
  Fft() {
    TestingDevice::start();
    Cufft& f = cufft();
    f.create = [](cufftHandle* handle) {
      *handle = ++made();
      return CUFFT_SUCCESS;
    };
    f.destroy = [](cufftHandle) { return CUFFT_SUCCESS; };
    f.set_auto_allocation = [](cufftHandle, int) { return CUFFT_SUCCESS; };
    f.set_stream = [](cufftHandle, cudaStream_t) { return CUFFT_SUCCESS; };
    f.set_work_area = [](cufftHandle, void* memory) {
      return memory ? CUFFT_SUCCESS : CUFFT_INVALID_VALUE;
    };
    f.make_plan = [](cufftHandle handle, int rank, long long* points, long long* from_sizes,
                     long long, long long, cudaDataType from, long long* to_sizes, long long,
                     long long, cudaDataType to, long long batch, size_t* work, cudaDataType) {
      EXPECT_TRUE(from_sizes == nullptr && to_sizes == nullptr);
      EXPECT_LE(rank, 3);
      plans()[handle] = {{points, points + rank}, from, to, batch};
      *work = 64;
      return refused() ? CUFFT_INVALID_SIZE : CUFFT_SUCCESS;
    };
    f.execute = &execute;
    refused() = false;
  }
  static int& made() {
    static int made = 0;
    return made;
  }
  static bool& refused() {
    static bool refused = false;
    return refused;
  }
};

const std::vector<std::vector<int64_t>> kDims = {{3},    {0},       {1},       {2, 3},
                                                 {3, 1}, {1, 2, 3}, {0, 3, 1}, {3, 0, 2, 1}};

Tensor complex_input() { return aten::randn({3, 4, 5, 6}, ScalarType::Complex128); }
Tensor real_input() { return aten::randn({3, 4, 5, 6}, ScalarType::Float64); }

TEST_F(Fft, ComplexToComplex) {
  for (const auto& dims : kDims) {
    for (int64_t normalization = 0; normalization < 3; ++normalization) {
      for (const bool forward : {false, true}) {
        const Tensor input = complex_input(), kept = aten::clone(input);
        const Tensor expected = aten::_fft_c2c(input, dims, normalization, forward);
        const Tensor out = empty_cpu(expected.sizes(), expected.dtype());
        call_kernel<aten::ops::_fft_c2c>(input.dtype(), input, IntList(dims), normalization,
                                         forward, out);
        EXPECT_TRUE(aten::allclose(out, expected));
        EXPECT_TRUE(aten::allclose(input, kept, 0, 0));
      }
    }
  }
}

TEST_F(Fft, RealToComplexAndBack) {
  for (const auto& dims : kDims) {
    for (int64_t normalization = 0; normalization < 3; ++normalization) {
      for (const bool forward : {false, true}) {
        const Tensor input = real_input();
        const Tensor half = aten::_fft_r2c(input, dims, normalization, forward);
        const Tensor out = empty_cpu(half.sizes(), half.dtype());
        call_kernel<aten::ops::_fft_r2c>(input.dtype(), input, IntList(dims), normalization,
                                         forward, out);
        EXPECT_TRUE(aten::allclose(out, half));

        // Also numbers that are no transform of real ones.
        const Tensor any = aten::randn(half.sizes(), ScalarType::Complex128),
                     kept = aten::clone(any);
        const int64_t last = input.size(dims.back());
        const Tensor expected = aten::_fft_c2r(any, dims, normalization, last, forward);
        const Tensor back = empty_cpu(expected.sizes(), expected.dtype());
        call_kernel<aten::ops::_fft_c2r>(any.dtype(), any, IntList(dims), normalization, last,
                                         forward, back);
        EXPECT_TRUE(aten::allclose(back, expected));
        EXPECT_TRUE(aten::allclose(any, kept, 0, 0));
      }
    }
  }
}

TEST_F(Fft, InputsOfAnyStrides) {
  const Tensor input = aten::narrow(aten::permute(complex_input(), {2, 0, 3, 1}), 2, 1, 4);
  const std::vector<int64_t> dims = {2, 0};
  const Tensor expected = aten::_fft_c2c(input, dims, 0, true);
  const Tensor out = empty_cpu(expected.sizes(), expected.dtype());
  call_kernel<aten::ops::_fft_c2c>(input.dtype(), input, IntList(dims), int64_t{0}, true, out);
  EXPECT_TRUE(aten::allclose(out, expected));
}

TEST_F(Fft, NothingToDo) {
  const Tensor input = complex_input(), out = empty_cpu(input.sizes(), input.dtype());
  call_kernel<aten::ops::_fft_c2c>(input.dtype(), input, IntList(), int64_t{0}, true, out);
  EXPECT_TRUE(aten::allclose(out, input, 0, 0));
  const Tensor empty = empty_cpu({0, 4}, ScalarType::Complex128);
  call_kernel<aten::ops::_fft_c2c>(empty.dtype(), empty, IntList({1}), int64_t{0}, true, empty);
}

TEST_F(Fft, APlanIsMadeOnceForAGeometry) {
  const Tensor input = aten::randn({2, 7}, ScalarType::Complex128);
  const Tensor out = empty_cpu(input.sizes(), input.dtype());
  const int before = made();
  for (int i = 0; i < 3; ++i)
    call_kernel<aten::ops::_fft_c2c>(input.dtype(), input, IntList({1}), int64_t{0}, true, out);
  EXPECT_EQ(made(), before + 1);
  // As many others take its place.
  for (int64_t n = 1; n <= 256; ++n) {
    const Tensor other = aten::randn({n, 13}, ScalarType::Complex128);
    call_kernel<aten::ops::_fft_c2c>(other.dtype(), other, IntList({1}), int64_t{0}, true,
                                     empty_cpu(other.sizes(), other.dtype()));
  }
  EXPECT_EQ(made(), before + 257);
  call_kernel<aten::ops::_fft_c2c>(input.dtype(), input, IntList({1}), int64_t{0}, true, out);
  EXPECT_EQ(made(), before + 258);
}

TEST_F(Fft, SaysWhatTheLibraryRefused) {
  refused() = true;
  const Tensor input = aten::randn({2, 11}, ScalarType::Complex128);
  for (int i = 0; i < 2; ++i) {  // no plan is kept
    try {
      call_kernel<aten::ops::_fft_c2c>(input.dtype(), input, IntList({1}), int64_t{0}, true,
                                       empty_cpu(input.sizes(), input.dtype()));
      FAIL();
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(),
                   "cuda: expected planning a Fourier transform to succeed, got the cuFFT error 8");
    }
  }
}

}  // namespace
}  // namespace treadle::cuda
