// MathSwitches: a program's choice of what device libraries may do with float32 numbers and how
// they choose among their algorithms. Backends read them at each call; the CPU's kernels have only
// one way. One more switch fills new memory with known values.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace treadle {

struct MathSwitches {
  // Factors of float32 may be rounded to TF32 (10 bits of mantissa); sums stay in float32.
  std::atomic<bool> matmul_tf32{false};
  std::atomic<bool> convolution_tf32{true};
  // The algorithms of a convolution are timed at the first call with a geometry, and the fastest is
  // used from then on.
  std::atomic<bool> convolution_benchmark{false};
  // Recurrent layers are computed as a whole, where the device has a library for it.
  std::atomic<bool> recurrent_library{true};
  // The maximum number of algorithms that are timed; 0: all.
  std::atomic<int64_t> convolution_candidates{10};
  // No choice may depend on measured time.
  std::atomic<bool> convolution_deterministic{false};
  // empty() and related functions fill their results: with NaN, the largest integer, or True.
  std::atomic<bool> fills_new_memory{false};
};

// The switches of the process.
MathSwitches& math_switches();

}  // namespace treadle
