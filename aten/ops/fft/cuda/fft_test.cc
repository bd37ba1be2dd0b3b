// The calls of cuFFT for Fourier transforms: the geometry of plans, the copies before and after,
// scales. The emulator stands in for cuFFT (emulator/cufft.cc), and the CPU's kernels are the
// reference.
//
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "aten/backend/cuda/calls.h"
#include "aten/backend/cuda/jit/kernel_calls.h"
#include "aten/backend/cuda/libraries/cufft.h"
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

class Fft : public ::testing::Test {
 protected:
  Fft() : whole_(cufft()) {
    calls().set_device = [](int) { return cudaSuccess; };  // the tensors are the CPU's
    cufft().create = [](cufftHandle* handle) {
      ++made();
      return cufftCreate(handle);
    };
    cufft().execute = [](cufftHandle handle, void* input, void* output, int direction) {
      const cufftResult status = cufftXtExec(handle, input, output, direction);
      calls().device_synchronize();  // no other call waits for CPU tensors
      return status;
    };
  }
  ~Fft() override { cufft() = whole_; }
  static int& made() {
    static int made = 0;
    return made;
  }

 private:
  const Cufft whole_;
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
        call_kernel<aten::ops::_fft_c2r_direction>(any.dtype(), any, IntList(dims), normalization,
                                                   last, forward, back);
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
  // As many others replace it.
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
  cufft().make_plan = [](cufftHandle, int, long long*, long long*, long long, long long,
                         cudaDataType, long long*, long long, long long, cudaDataType, long long,
                         size_t*, cudaDataType) { return CUFFT_INVALID_SIZE; };
  const Tensor input = aten::randn({2, 11}, ScalarType::Complex128);
  for (int i = 0; i < 2; ++i) {  // no plan is cached
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
