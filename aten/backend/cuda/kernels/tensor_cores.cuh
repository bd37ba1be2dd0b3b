// Tensor cores, for 16-bit factors and sums of float32: the fragments that a warp of 32 threads
// multiplies at once, and their loads from shared memory.
//
// With group = lane / 4 and pair = lane % 4 * 2:
//
//   left (16, 16): l[0] (group, pair..), l[1] (group + 8, pair..), l[2] and l[3] 8 columns on
//   right (16, 8): r0 (pair.., group), r1 (pair + 8.., group)
//   sums (16, 8):  s[0], s[1] (group, pair..), s[2], s[3] (group + 8, pair..)
//
// (PTX ISA, "Matrix fragments for mma.m16n8k16".) A register holds two neighbours along the inner
// dimension, the first in its low half.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "core/base/half.h"

namespace treadle::cuda {

// sums += left * right.
template <class T>
__device__ inline void multiply_16x8(float (&s)[4], const uint32_t (&l)[4], uint32_t r0,
                                     uint32_t r1) {
  if constexpr (std::is_same_v<T, Half>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
        : "r"(l[0]), "r"(l[1]), "r"(l[2]), "r"(l[3]), "r"(r0), "r"(r1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
        : "r"(l[0]), "r"(l[1]), "r"(l[2]), "r"(l[3]), "r"(r0), "r"(r1));
}

// Two numbers rounded to T, the first in the low half.
template <class T>
__device__ inline uint32_t packed(float first, float second) {
  uint32_t v;
  if constexpr (std::is_same_v<T, Half>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(second), "f"(first));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(second), "f"(first));
  return v;
}

// Four matrices (8, 8) of shared memory. Lane 8 m + r gives the address of row r of matrix m, which
// is aligned to 16 bytes. A lane receives (group, pair..) of matrix m, or of its transpose.
__device__ inline void load_matrices(uint32_t (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}
__device__ inline void load_transposed_matrices(uint32_t (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}

}  // namespace treadle::cuda
