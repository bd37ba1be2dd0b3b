// The headers that a file of pointwise and reduction kernels includes after foreach_target.h. Such
// a file is
//
//   #define TREADLE_TARGET_INCLUDE "its/own/path.cc"
//   #include "aten/backend/cpu/foreach_target.h"
//   #include "aten/engine/cpu/kernels-inl.h"
//
//   HWY_BEFORE_NAMESPACE();
//   namespace treadle::simd::HWY_NAMESPACE {          // compiled once per target
//   struct exp_fn {
//     template <class V> static HWY_INLINE auto eval([[maybe_unused]] V self) { return exp(self); }
//   };
//   static const PointwiseBlocks& exp_blocks() {
//     static constexpr PointwiseBlocks blocks =
//         pointwise_blocks<exp_fn, TREADLE_NUMBERS::exp_fn, /*tensors*/ 1, /*scalars*/ 0,
//                          /*bool result*/ false, /*ignores sign*/ false, float, double>();
//     return blocks;
//   }
//   }
//   HWY_AFTER_NAMESPACE();
//
//   #if HWY_ONCE                                       // compiled once
//   namespace treadle::simd {
//   HWY_EXPORT(exp_blocks);
//   static void exp_cpu(const PointwiseCall& call) {
//     static const auto& blocks = HWY_DYNAMIC_DISPATCH(exp_blocks)();
//     run_blocks(call, blocks);
//   }
//   }
//   namespace treadle::aten::kernels {
//   KernelRow exp_cpu_row = {.kernels = {..., (void*)&simd::exp_cpu, ...}};   // by ScalarType
//   }
//   #endif
//
// In an expression a name is an argument, a call is a function of these headers (unqualified), and
//   literals   0.5           constant<V>(0.5)
//   choice     c ? a : b     where(c, a, b)
//   logic      && || !       logical_and(a, b) logical_or(a, b) logical_not(a)
//   names      lowest, highest (in a reduction's init): lowest<A>(), highest<A>(),
//              the ends of the type's range
//
// `bool result` is true for the promotions compare and bool; with the promotion bool the one type
// is bool, and every dtype's cell is the same kernel. The types of a reduction are those of its
// accumulators.
//
// SPDX-License-Identifier: Apache-2.0
#if defined(TREADLE_ATEN_CPU_SIMD_KERNELS_INL_H_) == defined(TREADLE_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_KERNELS_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_KERNELS_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_KERNELS_INL_H_
#endif

#include "aten/engine/cpu/blocks-inl.h"
#include "aten/engine/cpu/reduce-inl.h"

#endif  // per-target include guard
