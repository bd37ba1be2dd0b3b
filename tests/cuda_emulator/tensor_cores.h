// For the emulator: the lanes of a warp give each other their parts, and each computes what is its
// own.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/base/half.h"
#include "tests/cuda_emulator/instructions.h"
#include "tests/cuda_emulator/threads.h"

namespace treadle::cuda {

namespace emulator {

template <class T>
float low(uint32_t two) {
  return static_cast<float>(T::from_bits(static_cast<uint16_t>(two)));
}
template <class T>
float high(uint32_t two) {
  return low<T>(two >> 16);
}

// The number in row r and column c of matrix m, whose rows' addresses the lanes have given.
inline uint32_t number(const Given* rows, int m, int r, int c) {
  uint16_t bits;
  std::memcpy(&bits, rows[8 * m + r].as<const char*>() + 2 * c, sizeof bits);
  return bits;
}

}  // namespace emulator

template <class T>
void multiply_16x8(float (&s)[4], const uint32_t (&l)[4], uint32_t r0, uint32_t r1) {
  using namespace emulator;
  struct Part {
    uint32_t left[4], right[2];
  };
  const Given* const given = give(Part{{l[0], l[1], l[2], l[3]}, {r0, r1}});
  const int group = lane() / 4, pair = lane() % 4 * 2;
  for (int i = 0; i < 4; ++i) {
    const int row = i / 2, column = pair + i % 2;  // row: group, or group + 8
    float sum = s[i];
    for (int k = 0; k < 16; ++k) {
      const uint32_t left = given[4 * group + k % 8 / 2].template as<Part>().left[row + k / 8 * 2];
      const uint32_t right = given[4 * column + k % 8 / 2].template as<Part>().right[k / 8];
      sum += k % 2 ? high<T>(left) * high<T>(right) : low<T>(left) * low<T>(right);
    }
    s[i] = sum;
  }
}

template <class T>
uint32_t packed(float first, float second) {
  if constexpr (std::is_same_v<T, Half>)
    return half_bits(first) | static_cast<uint32_t>(half_bits(second)) << 16;
  else
    return bfloat16_bits(first) | static_cast<uint32_t>(bfloat16_bits(second)) << 16;
}

inline void load_matrices(uint32_t (&m)[4], const void* row) {
  using namespace emulator;
  const Given* const rows = give(row);
  const int group = lane() / 4, pair = lane() % 4 * 2;
  for (int i = 0; i < 4; ++i)
    m[i] = number(rows, i, group, pair) | number(rows, i, group, pair + 1) << 16;
}
inline void load_transposed_matrices(uint32_t (&m)[4], const void* row) {
  using namespace emulator;
  const Given* const rows = give(row);
  const int group = lane() / 4, pair = lane() % 4 * 2;
  for (int i = 0; i < 4; ++i)
    m[i] = number(rows, i, pair, group) | number(rows, i, pair + 1, group) << 16;
}

}  // namespace treadle::cuda
