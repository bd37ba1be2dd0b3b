// Products of floating-point matrices with weights of 8 and 4 bits, and the packing of the latter.
//
// Threads share the rows of the weights, which are columns of the product. A column is computed by
// one thread, in one order.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "aten/backend/cpu/convert.h"
#include "aten/backend/cpu/gemm.h"
#include "aten/backend/cpu/work_space.h"
#include "aten/ops/_convert_weight_to_int4pack_for_cpu.h"
#include "aten/ops/_weight_int4pack_mm_for_cpu.h"
#include "aten/ops/_weight_int8pack_mm.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/matmul/cpu/few_bit_loops.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

using simd::kInt4Rows;
using simd::kInt4Terms;

constexpr int64_t kSlab = 512;        // rows that are multiplied at a time, which bounds memory
constexpr int64_t kWork = 1 << 19;    // multiplications that are worth a thread
constexpr int64_t kDecodedFrom = 16;  // more rows of int8 products are multiplied by gemm
constexpr int64_t kColumnStep = 64;   // whole tiles of the vector code

template <class T, class U>
void convert_run(const T* from, U* to, int64_t count) {
  simd::converter(scalar_type_of<T>, scalar_type_of<U>)(reinterpret_cast<const char*>(from),
                                                        sizeof(T), reinterpret_cast<char*>(to),
                                                        sizeof(U), count);
}

// f(begin, end) for ranges of columns, each of whole tiles.
template <class F>
void for_columns(int64_t columns, int64_t rows, int64_t terms, F&& f) {
  const int64_t work = std::max<int64_t>(1, std::min(rows, kSlab) * terms);
  const int64_t steps = std::max<int64_t>(1, kWork / work / kColumnStep);
  parallel_for(columns, steps * kColumnStep, f);
}

// The product of rows of `a`: of T, or of float where the loops wrote into memory of their own.
template <class T, class F>
void with_float_result(T* out, int64_t pitch, int64_t rows, int64_t columns, F&& compute) {
  if constexpr (std::is_same_v<T, float>) {
    compute(out, pitch);
  } else {
    const WorkSpace<float> sums(rows * columns);
    compute(sums.data(), columns);
    for (int64_t r = 0; r < rows; ++r)
      convert_run(sums.data() + r * columns, out + r * pitch, columns);
  }
}

// ---- int8 ----

// Many rows: some of the weights are decoded, and multiplied as matrices of float32 are.
void by_decoded(const simd::Int8Product& o) {
  const WorkSpace<float> decoded(o.columns * o.terms);
  convert_run(o.weights, decoded.data(), o.columns * o.terms);
  gemm<float>({o.a, o.rows, o.terms, o.terms, 1}, {decoded.data(), o.terms, o.columns, 1, o.terms},
              o.out, o.out_pitch, 1, 0);
  for (int64_t r = 0; r < o.rows; ++r) {
    float* const row = o.out + r * o.out_pitch;
    for (int64_t j = 0; j < o.columns; ++j) row[j] *= o.scales[j];
  }
}

template <class T>
void weight_int8pack_mm_cpu(const Tensor& self, const Tensor& mat2, const Tensor& scales,
                            const Tensor& out) {
  const Tensor x = aten::contiguous(self), weights = aten::contiguous(mat2),
               factors = aten::contiguous(scales);
  const int64_t rows = self.size(0), terms = self.size(1), columns = mat2.size(0);
  if (out.numel() == 0) return;
  const WorkSpace<float> a(rows * terms), scale(columns);
  convert_run(x.data_as<T>(), a.data(), rows * terms);
  convert_run(factors.data_as<T>(), scale.data(), columns);
  const auto multiply = rows > kDecodedFrom ? &by_decoded : simd::few_bit_loops().int8;
  for_columns(columns, rows, terms, [&](int64_t begin, int64_t end) {
    with_float_result(out.data_as<T>() + begin, columns, rows, end - begin,
                      [&](float* to, int64_t pitch) {
                        multiply({a.data(), rows, terms, weights.data_as<int8_t>() + begin * terms,
                                  end - begin, scale.data() + begin, to, pitch});
                      });
  });
}

// ---- int4 ----

// Panels of so many rows: element [k][row].
template <class T>
void pack_panels(const Tensor& self, int64_t panel, float* to) {
  const int64_t rows = self.size(0), terms = self.size(1);
  const int64_t row = self.stride(0), term = self.stride(1);
  const T* const from = self.data_as<T>();
  parallel_for((rows + panel - 1) / panel, std::max<int64_t>(1, 32768 / (panel * terms + 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t first = begin * panel; first < std::min(rows, end * panel);
                      first += panel) {
                   const int64_t count = std::min(panel, rows - first);
                   for (int64_t r = 0; r < count; ++r) {
                     const T* const some = from + (first + r) * row;
                     float* const there = to + first * terms + r;
                     for (int64_t k = 0; k < terms; ++k)
                       there[k * count] = static_cast<float>(some[k * term]);
                   }
                 }
               });
}

template <class T>
void weight_int4pack_mm_cpu(const Tensor& self, const Tensor& mat2, int64_t group,
                            const Tensor& scales_and_zeros, const Tensor& out) {
  // The vector code reads two types of scales.
  using S = std::conditional_t<std::is_same_v<T, BFloat16>, BFloat16, float>;
  const Tensor weights = aten::contiguous(mat2), factors = aten::contiguous(scales_and_zeros);
  const int64_t rows = self.size(0), terms = self.size(1), columns = mat2.size(0);
  if (out.numel() == 0) return;
  const simd::FewBitLoops& loops = simd::few_bit_loops();
  const WorkSpace<S> converted(std::is_same_v<S, T> ? 0 : factors.numel());
  const S* scales = converted.data();
  if constexpr (std::is_same_v<S, T>)
    scales = factors.data_as<T>();
  else
    convert_run(factors.data_as<T>(), converted.data(), factors.numel());
  const int64_t panel = rows > loops.few_rows ? loops.panel : rows;
  const int64_t slab = std::max(panel, kSlab / panel * panel);
  const WorkSpace<float> a(rows * terms);
  pack_panels<T>(self, panel, a.data());
  for_columns(columns, rows, terms, [&](int64_t begin, int64_t end) {
    for (int64_t row = 0; row < rows; row += slab) {
      const int64_t some = std::min(slab, rows - row);
      with_float_result(out.data_as<T>() + row * columns + begin, columns, some, end - begin,
                        [&](float* to, int64_t pitch) {
                          const simd::Int4Product<S> product{
                              a.data() + row * terms,
                              some,
                              panel,
                              terms,
                              weights.data_as<uint8_t>() + begin * (terms / 2),
                              (end - begin) / kInt4Rows,
                              scales + 2 * begin,
                              group,
                              2 * columns,
                              to,
                              pitch};
                          if constexpr (std::is_same_v<S, BFloat16>)
                            loops.int4_bfloat16(product);
                          else
                            loops.int4(product);
                        });
    }
  });
}

// Note [Packed int4]. Every number is checked before one is written.
template <class T>
void convert_weight_to_int4pack_cpu(const Tensor& self, int64_t, const Tensor& out) {
  const Tensor weights = aten::contiguous(self);
  const int64_t rows = self.size(0), terms = self.size(1);
  const T* const from = weights.data_as<T>();
  const T* const wrong =
      std::find_if(from, from + rows * terms, [](T q) { return static_cast<uint32_t>(q) > 15; });
  check<ErrorKind::Runtime>(
      wrong == from + rows * terms, OpName("_convert_weight_to_int4pack_for_cpu"),
      "expected numbers from 0 to 15, got ", wrong == from + rows * terms ? T(0) : *wrong);
  uint8_t* const to = out.data_as<uint8_t>();
  parallel_for(rows / kInt4Rows, std::max<int64_t>(1, 2048 / std::max<int64_t>(1, terms)),
               [&](int64_t begin, int64_t end) {
                 uint8_t* byte = to + begin * kInt4Rows * terms / 2;
                 for (int64_t block = begin; block < end; ++block) {
                   for (int64_t k = 0; k < terms; k += kInt4Terms) {
                     for (int64_t r = 0; r < kInt4Rows; ++r) {
                       const T* const some = from + (block * kInt4Rows + r) * terms + k;
                       for (int64_t t = 0; t < kInt4Terms; t += 2)
                         *byte++ = static_cast<uint8_t>(some[t] | some[t + 1] << 4);
                     }
                   }
                 }
               });
}

const auto int8_registered = register_kernels<aten::ops::_weight_int8pack_mm, DeviceType::CPU>(
    []<class T>() { return &weight_int8pack_mm_cpu<T>; }, "weight_int8pack_mm_cpu");
const auto int4_registered =
    register_kernels<aten::ops::_weight_int4pack_mm_for_cpu, DeviceType::CPU>(
        []<class T>() { return &weight_int4pack_mm_cpu<T>; }, "weight_int4pack_mm_cpu");
const auto pack_registered =
    register_kernels<aten::ops::_convert_weight_to_int4pack_for_cpu, DeviceType::CPU>(
        []<class T>() { return &convert_weight_to_int4pack_cpu<T>; },
        "convert_weight_to_int4pack_cpu");

}  // namespace
}  // namespace treadle::cpu
