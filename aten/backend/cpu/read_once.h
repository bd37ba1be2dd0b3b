// Reads of memory that another thread may write at the same time: NumPy's arrays, shared memory,
// tensors that Python code changes.
//
//   const int64_t entry = read_once(values + i);
//   if (entry < size) data[entry] ...      // what was checked is what is used
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace treadle::cpu {

// The number at `place`. The compiler may not read it a second time, as it may with `*place`.
template <class T>
[[gnu::always_inline]] inline T read_once(const T* place) {
  T value;
  __atomic_load(place, &value, __ATOMIC_RELAXED);
  return value;
}

}  // namespace treadle::cpu
