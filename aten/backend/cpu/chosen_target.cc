// The choice of a target at run time, by which Highway's HWY_DYNAMIC_DISPATCH calls a function.
//
// Highway has these functions in a library (libhwy), too. A program that loads that library waits
// some milliseconds, while the library measures the processor's clock.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdarg>
#include <cstdio>

#include "aten/backend/cpu/targets.h"
#include "core/base/error.h"
#include "hwy/targets.h"

namespace hwy {
namespace {

ChosenTarget chosen;
std::atomic<int64_t> disabled{0};
std::atomic<int64_t> tested{0};  // what a test said that this machine has, or 0

#if defined(__x86_64__)
// The levels of the psABI are what the compiler may use for a target, but for the instructions for
// AES, which Highway adds.
int64_t targets_of_machine() {
  __builtin_cpu_init();
  int64_t found = HWY_STATIC_TARGET;
  if (!__builtin_cpu_supports("aes") || !__builtin_cpu_supports("pclmul")) return found;
  if (__builtin_cpu_supports("x86-64-v3")) found |= HWY_AVX2;
  if (__builtin_cpu_supports("x86-64-v4")) found |= HWY_AVX3;
  return found;
}
#else
int64_t targets_of_machine() { return HWY_STATIC_TARGET; }
#endif

}  // namespace

int64_t SupportedTargets() {
  const int64_t of_test = tested.load();
  const int64_t found = (of_test ? of_test : targets_of_machine()) & ~disabled.load();
  return found ? found : HWY_STATIC_TARGET;
}

void DisableTargets(int64_t disabled_targets) {
  disabled = disabled_targets;
  chosen.DeInit();
}

void SetSupportedTargetsForTest(int64_t targets) {
  tested = targets;
  chosen.DeInit();
}

ChosenTarget& GetChosenTarget() { return chosen; }

// A failed assertion of Highway's headers, which libraries of operators are compiled with.
void Abort(const char* file, int line, const char* format, ...) {
  char text[512];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof(text), format, values);
  va_end(values);
  treadle::fail<treadle::ErrorKind::Internal>("internal error at ", file, ":", line, ": ", text);
}

}  // namespace hwy
