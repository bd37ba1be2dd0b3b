// Fourier transforms of cuFFT for emulated devices, by their definition, in double.
//
// SPDX-License-Identifier: Apache-2.0
#include <cufftXt.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <numbers>
#include <vector>

#include "tests/cuda_emulator/device.h"
#include "tests/cuda_emulator/threads.h"

namespace treadle::cuda::emulator {
namespace {

using Complex = std::complex<double>;
constexpr size_t kWorkArea = 64;

struct Plan {
  std::vector<long long> points;
  cudaDataType from = CUDA_C_64F, to = CUDA_C_64F;
  int64_t batch = 0;
  cudaStream_t stream = nullptr;
  void* work = nullptr;
  bool own_memory = true;
};

std::mutex& gate() {
  static std::mutex gate;
  return gate;
}
std::map<cufftHandle, Plan>& plans() {
  static auto* plans = new std::map<cufftHandle, Plan>;
  return *plans;
}
// Calls f(plan), if there is such a plan.
template <class F>
cufftResult with_plan(cufftHandle handle, F f) {
  const std::lock_guard lock(gate());
  const auto it = plans().find(handle);
  return it == plans().end() ? CUFFT_INVALID_PLAN : f(it->second);
}

// All frequencies of `points` numbers, in each dimension by the definition.
std::vector<Complex> transformed(std::vector<Complex> values, const std::vector<long long>& points,
                                 int direction) {
  int64_t inner = 1;
  for (size_t d = points.size(); d-- > 0;) {
    const int64_t n = points[d];
    std::vector<Complex> roots(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i)
      roots[static_cast<size_t>(i)] = std::polar(
          1.0, direction * 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n));
    std::vector<Complex> next(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t k = static_cast<int64_t>(i) / inner % n;
      for (int64_t j = 0; j < n; ++j)
        next[i] += values[static_cast<size_t>(static_cast<int64_t>(i) + (j - k) * inner)] *
                   roots[static_cast<size_t>(j * k % n)];
    }
    values = std::move(next);
    inner *= n;
  }
  return values;
}

// One array after another; R is float or double. Half of a real array's transform is kept, and
// the way back writes over its input.
template <class R>
void execute(const Plan& p, void* input, void* output, int direction) {
  int64_t size = 1;
  for (const long long n : p.points) size *= n;
  const int64_t last = p.points.back(), half = last / 2 + 1, half_size = size / last * half;
  const bool real_in = p.from == CUDA_R_32F || p.from == CUDA_R_64F;
  const bool real_out = p.to == CUDA_R_32F || p.to == CUDA_R_64F;
  for (int64_t b = 0; b < p.batch; ++b) {
    std::vector<Complex> values;
    values.reserve(static_cast<size_t>(size));
    if (real_in) {
      const R* const from = static_cast<const R*>(input) + b * size;
      values.assign(from, from + size);
    } else if (!real_out) {
      const auto* const from = static_cast<const std::complex<R>*>(input) + b * size;
      values.assign(from, from + size);
    } else {
      auto* const from = static_cast<std::complex<R>*>(input) + b * half;
      for (int64_t k = 0; k < last; ++k)
        values.push_back(k < half ? Complex(from[k]) : std::conj(Complex(from[last - k])));
      std::fill(from, from + half, std::complex<R>(-1e9));
    }
    values = transformed(std::move(values), p.points, direction);
    if (real_in) {
      auto* const to = static_cast<std::complex<R>*>(output) + b * half_size;
      for (int64_t i = 0; i < half_size; ++i)
        to[i] = std::complex<R>(values[static_cast<size_t>(i / half * last + i % half)]);
    } else if (!real_out) {
      auto* const to = static_cast<std::complex<R>*>(output) + b * size;
      for (int64_t i = 0; i < size; ++i) to[i] = std::complex<R>(values[static_cast<size_t>(i)]);
    } else {
      R* const to = static_cast<R*>(output) + b * size;
      for (int64_t i = 0; i < size; ++i)
        to[i] = static_cast<R>(values[static_cast<size_t>(i)].real());
    }
  }
}

}  // namespace
}  // namespace treadle::cuda::emulator

namespace e = treadle::cuda::emulator;

extern "C" {

cufftResult cufftCreate(cufftHandle* handle) {
  const std::lock_guard lock(e::gate());
  static cufftHandle made = 0;
  e::plans()[*handle = ++made];
  return CUFFT_SUCCESS;
}
cufftResult cufftDestroy(cufftHandle handle) {
  const std::lock_guard lock(e::gate());
  return e::plans().erase(handle) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}
cufftResult cufftSetAutoAllocation(cufftHandle handle, int own) {
  return e::with_plan(handle, [&](e::Plan& p) {
    p.own_memory = own;
    return CUFFT_SUCCESS;
  });
}
cufftResult cufftXtMakePlanMany(cufftHandle handle, int rank, long long* points,
                                long long* from_sizes, long long, long long, cudaDataType from,
                                long long* to_sizes, long long, long long, cudaDataType to,
                                long long batch, size_t* work, cudaDataType) {
  if (rank < 1 || rank > 3 || from_sizes || to_sizes) return CUFFT_INVALID_SIZE;
  // The way back to real numbers in several dimensions is not what callers mean
  // (aten/ops/fft/cuda/fft.cc).
  if (to == CUDA_R_64F || to == CUDA_R_32F) {
    if (rank != 1) return CUFFT_NOT_IMPLEMENTED;
  }
  return e::with_plan(handle, [&](e::Plan& p) {
    p.points.assign(points, points + rank);
    p.from = from;
    p.to = to;
    p.batch = batch;
    *work = e::kWorkArea;
    return CUFFT_SUCCESS;
  });
}
cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  return e::with_plan(handle, [&](e::Plan& p) {
    p.stream = stream;
    return CUFFT_SUCCESS;
  });
}
cufftResult cufftSetWorkArea(cufftHandle handle, void* memory) {
  return e::with_plan(handle, [&](e::Plan& p) {
    p.work = memory;
    return memory ? CUFFT_SUCCESS : CUFFT_INVALID_VALUE;
  });
}
cufftResult cufftXtExec(cufftHandle handle, void* input, void* output, int direction) {
  return e::with_plan(handle, [&](const e::Plan& p) {
    if (!p.own_memory && !p.work) return CUFFT_INVALID_VALUE;
    const bool real_in = p.from == CUDA_R_32F || p.from == CUDA_R_64F;
    const bool real_out = p.to == CUDA_R_32F || p.to == CUDA_R_64F;
    // For real arrays the library knows one direction each.
    if ((real_in && direction != CUFFT_FORWARD) || (real_out && direction != CUFFT_INVERSE))
      return CUFFT_INVALID_VALUE;
    const bool of_float = p.from == CUDA_R_32F || p.from == CUDA_C_32F;
    e::queue(p.stream, [=] {
      std::memset(p.work, e::kFresh, p.own_memory ? 0 : e::kWorkArea);
      if (of_float)
        e::execute<float>(p, input, output, direction);
      else
        e::execute<double>(p, input, output, direction);
    });
    return CUFFT_SUCCESS;
  });
}

}  // extern "C"
