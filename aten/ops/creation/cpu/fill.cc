// CPU kernels that write constant numbers, and the kernel that reads a number.
//
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstring>

#include "aten/ops/_fill_.h"
#include "aten/ops/_linear_.h"
#include "aten/ops/_linspace_.h"
#include "aten/ops/_local_scalar_dense.h"
#include "aten/ops/_triangle_indices_.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

constexpr int64_t kGrain = 32768;

template <class T>
void fill_cpu(const Tensor& self, const Scalar& value) {
  const T v = value.checked_to<T>("fill_");
  T* out = self.data_as<T>();
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(&v);
  const bool one_byte =
      std::all_of(bytes, bytes + sizeof(T), [&](unsigned char b) { return b == bytes[0]; });
  parallel_for(self.numel(), 4 * kGrain, [&](int64_t begin, int64_t end) {
    if (one_byte)
      std::memset(static_cast<void*>(out + begin), bytes[0],
                  static_cast<size_t>(end - begin) * sizeof(T));
    else
      std::fill(out + begin, out + end, v);
  });
}

// out[i] = number(i) for i in [begin, end), which has at most kGrain elements. They are counted
// from `begin` in 32 bits, which vectors convert to double.
template <class T, class F>
void write_range(T* out, int64_t begin, int64_t end, F number) {
  const double before = static_cast<double>(begin);
  const int32_t count = static_cast<int32_t>(end - begin);
  for (int32_t i = 0; i < count; ++i) {
    const auto value = number(before + static_cast<double>(i));
    if constexpr (std::is_floating_point_v<T>)
      out[begin + i] = static_cast<T>(value);
    else
      out[begin + i] = Scalar(value).template to<T>();
  }
}

// Floating numbers are computed in double, so that element i is the nearest to the exact one in
// every shorter type.
template <class T>
void linear_cpu(const Tensor& self, const Scalar& start, const Scalar& step) {
  T* out = self.data_as<T>();
  const int64_t n = self.numel();
  if (n == 0) return;
  // All elements lie between the first and the last.
  if (std::is_integral_v<T> && start.is_integral() && step.is_integral()) {
    const auto first = static_cast<uint64_t>(start.to<int64_t>()),
               by = static_cast<uint64_t>(step.to<int64_t>());
    if (sizeof(T) < 8) {  // 64 bits count as their type does
      static_cast<void>(start.checked_to<T>("arange"));
      const uint64_t last = first + by * static_cast<uint64_t>(n - 1);
      static_cast<void>(Scalar(static_cast<int64_t>(last)).checked_to<T>("arange"));
    }
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
      // A sum, as vectors have no product of 64 bits.
      uint64_t value = first + by * static_cast<uint64_t>(begin);
      for (int64_t i = begin; i < end; ++i, value += by) out[i] = static_cast<T>(value);
    });
    return;
  }
  using Compute = std::conditional_t<is_complex_type<T>, std::complex<double>, double>;
  const Compute first = start.checked_to<Compute>("arange"),
                by = step.checked_to<Compute>("arange");
  static_cast<void>(Scalar(first).checked_to<T>("arange"));
  static_cast<void>(Scalar(first + by * static_cast<double>(n - 1)).checked_to<T>("arange"));
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    write_range(out, begin, end, [&](double i) { return first + by * i; });
  });
}

// Both ends are exact: the second half counts back from the end.
template <class T>
void linspace_cpu(const Tensor& self, const Scalar& start, const Scalar& end) {
  using Compute = std::conditional_t<is_complex_type<T>, std::complex<double>, double>;
  T* out = self.data_as<T>();
  const int64_t n = self.numel();
  if (n == 0) return;
  const Compute first = start.checked_to<Compute>("linspace"),
                last = end.checked_to<Compute>("linspace");
  static_cast<void>(Scalar(first).checked_to<T>("linspace"));
  if (n > 1) static_cast<void>(Scalar(last).checked_to<T>("linspace"));
  const Compute step = n > 1 ? (last - first) / static_cast<double>(n - 1) : Compute(0);
  const int64_t half = n == 1 ? n : n / 2;
  parallel_for(n, kGrain, [&](int64_t begin, int64_t stop) {
    const int64_t middle = std::clamp(half, begin, stop);
    write_range(out, begin, middle, [&](double i) { return first + step * i; });
    const double most = static_cast<double>(n - 1);
    write_range(out, middle, stop, [&](double i) { return last - step * (most - i); });
  });
}

template <class T>
void triangle_indices_cpu(const Tensor& self, int64_t row, int64_t col, int64_t offset,
                          bool upper) {
  const int64_t count = self.numel() / 2;
  T* rows = self.data_as<T>();
  T* columns = rows + count;
  // Beyond the matrix every offset is the same, so there is nothing to overflow.
  offset = std::clamp(offset, -row - 1, col + 1);
  int64_t at = 0;
  // Rows without an element come first in a lower triangle and last in an upper one.
  for (int64_t r = upper ? 0 : std::max<int64_t>(0, -offset); at < count && r < row; ++r) {
    const int64_t begin = upper ? std::clamp(r + offset, int64_t{0}, col) : 0;
    const int64_t end = upper ? col : std::clamp(r + offset + 1, int64_t{0}, col);
    for (int64_t c = begin; c < end && at < count; ++c, ++at) {
      rows[at] = static_cast<T>(r);
      columns[at] = static_cast<T>(c);
    }
  }
}

template <class T>
Scalar local_scalar_dense_cpu(const Tensor& self) {
  check<ErrorKind::Runtime>(self.numel() > 0, OpName("_local_scalar_dense"),
                            "expected a tensor with elements, got shape ", self.sizes());
  return Scalar(*self.data_as<T>());
}

const auto fill_registered = register_kernels<aten::ops::_fill_, DeviceType::CPU>(
    []<class T>() { return &fill_cpu<T>; }, "fill_cpu");
const auto linear_registered = register_kernels<aten::ops::_linear_, DeviceType::CPU>(
    []<class T>() { return &linear_cpu<T>; }, "linear_cpu");
const auto linspace_registered = register_kernels<aten::ops::_linspace_, DeviceType::CPU>(
    []<class T>() { return &linspace_cpu<T>; }, "linspace_cpu");
const auto triangle_indices_registered =
    register_kernels<aten::ops::_triangle_indices_, DeviceType::CPU>(
        []<class T>() { return &triangle_indices_cpu<T>; }, "triangle_indices_cpu");
const auto local_scalar_dense_registered =
    register_kernels<aten::ops::_local_scalar_dense, DeviceType::CPU>(
        []<class T>() { return &local_scalar_dense_cpu<T>; }, "local_scalar_dense_cpu");

}  // namespace
}  // namespace treadle::cpu
