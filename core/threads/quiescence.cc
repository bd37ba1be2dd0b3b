// Waits for the operators of other threads, through the functions that a language has set.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/threads/quiescence.h"

#include <atomic>

#include "core/base/error.h"

namespace treadle {
namespace {
std::atomic<const Quiescence::Threads*> threads_of_language{nullptr};
}  // namespace

void Quiescence::set_threads(const Threads* threads) { threads_of_language.store(threads); }

std::atomic<int> Quiescence::wanted_{0};

Quiescence::Quiescence(const char* op) {
  const Threads* const threads = threads_of_language.load();
  if (threads == nullptr) return;
  wanted_.fetch_add(1, std::memory_order_relaxed);
  const bool quiet = threads->begin();
  wanted_.fetch_sub(1, std::memory_order_relaxed);
  check<ErrorKind::Runtime>(quiet, OpName(op),
                            "expected the operators of other threads to end within a minute, so "
                            "that a tensor's memory can change; one still runs");
}
void Quiescence::give_way_now() {
  if (const Threads* const threads = threads_of_language.load()) threads->give_way();
}
Quiescence::~Quiescence() {
  if (const Threads* const threads = threads_of_language.load()) threads->end();
}

}  // namespace treadle
