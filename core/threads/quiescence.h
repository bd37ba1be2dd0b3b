// Quiescence: while such an object exists, no other thread is inside an operator. It serves the few
// changes that would free memory or change geometry under a running kernel: resize_, set_, `x.data
// = y`, an `out=` that grows.
//
//   const Quiescence quiet("resize_");
//   storage.resize(nbytes);
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace treadle {

class Quiescence {
 public:
  // Waits for the operators of other threads. RuntimeError, which names `op`, if one takes longer
  // than a minute.
  explicit Quiescence(const char* op);
  ~Quiescence();
  Quiescence(const Quiescence&) = delete;
  Quiescence& operator=(const Quiescence&) = delete;

  // For code that runs one operator after the other without returning to its caller. It is called
  // between two of them, where the code holds tensors and no addresses, and lets a waiting thread
  // go first.
  static void give_way() {
    if (wanted_.load(std::memory_order_relaxed) > 0) [[unlikely]]
      give_way_now();
  }

  // The implementation, for the language whose threads call; set once, by its bindings. Without it,
  // the program itself must separate calls by several threads. `begin` returns whether the other
  // threads came to rest. If not, `end` is not called.
  struct Threads {
    bool (*begin)();
    void (*end)();
    void (*give_way)();
  };
  static void set_threads(const Threads* threads);

 private:
  static void give_way_now();

  static std::atomic<int> wanted_;  // threads that wait
};

}  // namespace treadle
