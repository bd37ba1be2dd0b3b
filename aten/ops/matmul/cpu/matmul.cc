// Matrix products of two- and three-dimensional tensors: mm, addmm, bmm, baddbmm.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/gemm.h"
#include "aten/engine/copy.h"
#include "aten/ops/addmm.h"
#include "aten/ops/baddbmm.h"
#include "aten/ops/bmm.h"
#include "aten/ops/mm.h"
#include "core/tensor/tensor.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

template <class T>
MatrixView<T> matrix(const Tensor& t, int64_t batch = 0) {
  const IntList s = t.sizes(), st = t.strides();
  const size_t d = s.size() - 2;
  return {t.data_as<T>() + (d ? batch * st[0] : 0), s[d], s[d + 1], st[d], st[d + 1]};
}

template <class T>
void mm_cpu(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  gemm<T>(matrix<T>(self), matrix<T>(mat2), out.data_as<T>(), out.sizes()[1], Factor<T>(1),
          Factor<T>(0));
}

// `addend` broadcast to the shape of `out`, copied into it.
void fill_with(const Tensor& addend, const Tensor& out) {
  DimVector strides(out.sizes().size(), 0);
  const size_t shift = out.sizes().size() - addend.sizes().size();
  for (size_t d = 0; d < addend.sizes().size(); ++d) {
    if (addend.sizes()[d] != 1) strides[d + shift] = addend.strides()[d];
  }
  copy_strided(out, alias_with_geometry(addend, out.sizes(), strides, addend.storage_offset()));
}

// The strides of an addend that is broadcast to a matrix.
struct Strides2 {
  int64_t row, column;
};
Strides2 broadcast_strides(const Tensor& addend) {
  const IntList sizes = addend.sizes(), strides = addend.strides();
  const size_t dims = sizes.size();
  return {dims > 1 && sizes[0] > 1 ? strides[0] : 0,
          dims > 0 && sizes.back() > 1 ? strides.back() : 0};
}

// out = product + factor * addend, which is broadcast. `product` may be `out`.
template <class T>
void add_to_product(const Tensor& product, const Tensor& addend, T factor, const Tensor& out) {
  const int64_t rows = out.sizes()[0], columns = out.sizes()[1];
  const auto [row, column] = broadcast_strides(addend);
  const T *const sums = product.data_as<T>(), *const from = addend.data_as<T>();
  T* const to = out.data_as<T>();
  parallel_for(rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, columns)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const T *const sum = sums + i * columns, *const x = from + i * row;
                   T* const y = to + i * columns;
                   if (column == 1)
                     for (int64_t j = 0; j < columns; ++j) y[j] = sum[j] + factor * x[j];
                   else
                     for (int64_t j = 0; j < columns; ++j) y[j] = sum[j] + factor * x[j * column];
                 }
               });
}

template <class T>
void addmm_cpu(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
               const Scalar& alpha, const Tensor& out) {
  // Numbers for integers lose their fractions.
  const auto a = alpha.checked_to<Factor<T>>("addmm"), b = beta.checked_to<Factor<T>>("addmm");
  // The addend is added in one more pass over the product, which costs less than reading it while
  // the product is computed. Sums of 16-bit floats would be rounded twice.
  if constexpr (std::is_floating_point_v<T>) {
    if (b != T(0) && out.numel() > 0) {
      const bool in_place = self.storage() == out.storage();
      const Tensor product = in_place ? empty_cpu(out.sizes(), out.dtype()) : out;
      gemm<T>(matrix<T>(mat1), matrix<T>(mat2), product.data_as<T>(), out.sizes()[1], a, T(0));
      return add_to_product<T>(product, self, b, out);
    }
  }
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    // Memory that the result is written to may hold the addend, but in no other order.
    if (self.storage() != out.storage() || self.is_same(out)) {
      const Strides2 of = broadcast_strides(self);
      return gemm<T>(matrix<T>(mat1), matrix<T>(mat2), out.data_as<T>(), out.sizes()[1], a, b,
                     {self.data_as<T>(), of.row, of.column});
    }
  }
  // With beta == 0 the addend is ignored altogether, even a NaN in it.
  if (b != Factor<T>(0)) fill_with(self, out);
  gemm<T>(matrix<T>(mat1), matrix<T>(mat2), out.data_as<T>(), out.sizes()[1], a, b);
}

template <class T>
void batched(const Tensor& a, const Tensor& b, const Tensor& out, Factor<T> alpha, Factor<T> beta) {
  const int64_t n = out.sizes()[0], rows = out.sizes()[1], cols = out.sizes()[2],
                inner = a.sizes()[2];
  if (out.numel() == 0) return;  // however many matrices of no elements there are
  // Large matrices are split inside gemm, small ones across the batch.
  const int64_t work = std::max<int64_t>(1, rows * cols * std::max<int64_t>(1, inner));
  const int64_t grain =
      work >= (int64_t{1} << 22) ? n : std::max<int64_t>(1, (int64_t{1} << 18) / work);
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      gemm<T>(matrix<T>(a, i), matrix<T>(b, i), out.data_as<T>() + i * rows * cols, cols, alpha,
              beta);
    }
  });
}

template <class T>
void bmm_cpu(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  batched<T>(self, mat2, out, Factor<T>(1), Factor<T>(0));
}

template <class T>
void baddbmm_cpu(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                 const Scalar& alpha, const Tensor& out) {
  // Numbers for integers lose their fractions.
  const auto a = alpha.checked_to<Factor<T>>("baddbmm"), b = beta.checked_to<Factor<T>>("baddbmm");
  if (b != Factor<T>(0)) fill_with(self, out);
  batched<T>(batch1, batch2, out, a, b);
}

const auto mm_registered = register_kernels<aten::ops::mm, DeviceType::CPU>(
    []<class T>() { return &mm_cpu<T>; }, "mm_cpu");
const auto addmm_registered = register_kernels<aten::ops::addmm, DeviceType::CPU>(
    []<class T>() { return &addmm_cpu<T>; }, "addmm_cpu");
const auto bmm_registered = register_kernels<aten::ops::bmm, DeviceType::CPU>(
    []<class T>() { return &bmm_cpu<T>; }, "bmm_cpu");
const auto baddbmm_registered = register_kernels<aten::ops::baddbmm, DeviceType::CPU>(
    []<class T>() { return &baddbmm_cpu<T>; }, "baddbmm_cpu");

}  // namespace
}  // namespace treadle::cpu
