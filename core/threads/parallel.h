// Parallel loops. Their split depends on the problem only, so results have the same bits at any
// thread count.
//
//   parallel_for(n, 16384, [&](int64_t begin, int64_t end) { ... });
//   parallel_chunks(chunks, [&](int64_t chunk) { partial[chunk] = ...; });
//   // then combine in order of chunk
//
// A nested call runs inline. An exception in a chunk is rethrown in the caller: that of the chunk
// with the lowest number.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

namespace treadle {

int num_threads();
void set_num_threads(int n);  // ValueError unless n >= 1
bool in_parallel_region();

namespace detail {
using ChunkFn = void (*)(void* context, int64_t chunk);
void run_chunks(int64_t chunks, ChunkFn fn, void* context);
}  // namespace detail

template <class F>
void parallel_chunks(int64_t chunks, F&& f) {
  if (chunks <= 0) return;
  if (chunks == 1) {
    f(int64_t{0});
    return;
  }
  detail::run_chunks(
      chunks, [](void* c, int64_t i) { (*static_cast<std::remove_reference_t<F>*>(c))(i); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

// The length of the pieces of [0, n): at most `grain`. Few pieces are made equal and a power of two
// in number, so that no thread waits long for another. A piece begins at a multiple of what
// `grain` is one of: of the largest power of two, up to 64.
int64_t piece_length(int64_t n, int64_t grain);

// Splits [0, n) into pieces of `piece_length(n, grain)` (the last may be shorter).
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& f) {
  if (grain < 1) grain = 1;
  if (n <= grain) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  const int64_t piece = piece_length(n, grain);
  parallel_chunks((n + piece - 1) / piece, [&](int64_t chunk) {
    const int64_t begin = chunk * piece;
    f(begin, begin + piece < n ? begin + piece : n);
  });
}

// Runs `f` so that OpenMP libraries called inside (OpenBLAS, oneDNN) use one thread: their own
// split would make bits depend on the thread count. Inside a parallel loop this already holds.
void run_single_threaded(void (*fn)(void*), void* context);
template <class F>
void single_threaded(F&& f) {
  run_single_threaded([](void* c) { (*static_cast<std::remove_reference_t<F>*>(c))(); },
                      const_cast<void*>(static_cast<const void*>(&f)));
}

}  // namespace treadle
