// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/deferral.h"

namespace treadle {
namespace {

std::atomic<int64_t> everywhere{kDeferNever};
thread_local constinit std::optional<int64_t> here __attribute__((tls_model("initial-exec")));
Deferral* taker = nullptr;

void count(int64_t least, int change) noexcept {
  if (least != kDeferNever) detail::deferring.fetch_add(change, std::memory_order_relaxed);
}

}  // namespace

int64_t detail::least_deferred_here() noexcept {
  return here.value_or(everywhere.load(std::memory_order_relaxed));
}

void set_deferral_here(std::optional<int64_t> least) noexcept {
  count(least.value_or(kDeferNever), 1);
  count(here.value_or(kDeferNever), -1);
  here = least;
}
std::optional<int64_t> deferral_here() noexcept { return here; }

void set_deferral_everywhere(int64_t least) noexcept {
  count(least, 1);
  count(everywhere.exchange(least, std::memory_order_relaxed), -1);
}
int64_t deferral_everywhere() noexcept { return everywhere.load(std::memory_order_relaxed); }

void set_deferral(Deferral* deferral) { taker = deferral; }
Deferral& deferral() { return *taker; }

}  // namespace treadle
