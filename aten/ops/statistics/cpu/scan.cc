// cumsum and cumprod: running sums and products along a dimension.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/dim_slices.h"
#include "aten/backend/cpu/long_sums.h"
#include "aten/backend/cpu/wrapping.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/cumprod.h"
#include "aten/ops/cumsum.h"
#include "aten/ops/to.h"

namespace treadle::cpu {
namespace {

struct SumOf {
  template <class R>
  R operator()(R a, R b) const {
    return sum_of(a, b);
  }
};
struct ProductOf {
  template <class R>
  R operator()(R a, R b) const {
    return product_of(a, b);
  }
};

template <class T, class Combine>
void scan(const Tensor& input, int64_t dim, Combine combine, const Tensor& out) {
  using R = wide_type<T>;
  const DimSlices s = dim_slices(input.sizes(), dim);
  const T* const from = input.data_as<T>();
  T* const to = out.data_as<T>();
  if (s.inner == 1) {
    for_each_slice(s, [&](int64_t first, int64_t /*slice*/) {
      R running = static_cast<R>(from[first]);
      to[first] = from[first];
      for (int64_t j = first + 1; j < first + s.size; ++j) {
        running = combine(running, static_cast<R>(from[j]));
        to[j] = static_cast<T>(running);
      }
    });
    return;
  }
  for_each_column_block(s, [&](int64_t o, int64_t column, int64_t columns) {
    R running[kColumns];
    const int64_t first = o * s.size * s.inner + column;
    for (int64_t k = 0; k < columns; ++k) running[k] = static_cast<R>(from[first + k]);
    for (int64_t k = 0; k < columns; ++k) to[first + k] = from[first + k];
    for (int64_t j = 1; j < s.size; ++j) {
      const int64_t row = first + j * s.inner;
      for (int64_t k = 0; k < columns; ++k) {
        running[k] = combine(running[k], static_cast<R>(from[row + k]));
        to[row + k] = static_cast<T>(running[k]);
      }
    }
  });
}

// The result's dtype may be any, whatever self's is.
template <class Combine>
void scan_to_dtype(const Tensor& self, int64_t dim, Combine combine, const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor input =
      aten::contiguous(self.dtype() == out.dtype() ? self : aten::to(self, out.dtype()));
  visit_type(AllTypes{}, out.dtype(), [&]<class T>() { scan<T>(input, dim, combine, out); });
}

template <class T>
void cumsum_cpu(const Tensor& self, int64_t dim, std::optional<ScalarType> /*dtype*/,
                const Tensor& out) {
  scan_to_dtype(self, dim, SumOf(), out);
}

template <class T>
void cumprod_cpu(const Tensor& self, int64_t dim, std::optional<ScalarType> /*dtype*/,
                 const Tensor& out) {
  scan_to_dtype(self, dim, ProductOf(), out);
}

const auto cumsum_registered = register_kernels<aten::ops::cumsum, DeviceType::CPU>(
    []<class T>() { return &cumsum_cpu<T>; }, "cumsum_cpu");
const auto cumprod_registered = register_kernels<aten::ops::cumprod, DeviceType::CPU>(
    []<class T>() { return &cumprod_cpu<T>; }, "cumprod_cpu");

}  // namespace
}  // namespace treadle::cpu
