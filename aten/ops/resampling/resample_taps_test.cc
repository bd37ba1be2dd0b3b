// The assumptions of kernels about the weights of resampling.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/resampling/resample_taps.h"

#include <gtest/gtest.h>

namespace treadle {
namespace {

constexpr const char* kModes[] = {"nearest", "nearest-exact",    "linear",
                                  "cubic",   "linear-antialias", "cubic-antialias"};

template <class F>
void for_all_taps(F f) {
  for (const char* mode : kModes)
    for (const bool align_corners : {false, true})
      for (int64_t in = 1; in <= 12; ++in)
        for (int64_t out = 1; out <= 30; ++out)
          for (const std::optional<double> scale :
               {std::optional<double>(), std::optional<double>(0.3), std::optional<double>(1.0),
                std::optional<double>(2.7)})
            f(ResampleTaps(mode, in, out, align_corners, scale), mode);
}

TEST(ResampleTaps, AreInsideAndNoMoreThanSaid) {
  for_all_taps([](const ResampleTaps& taps, const char* mode) {
    for (int64_t o = 0; o < taps.out; ++o) {
      int64_t count = 0;
      double sum = 0;
      taps.of(o, [&](int64_t at, double weight) {
        ASSERT_GE(at, 0) << mode;
        ASSERT_LT(at, taps.in) << mode;
        sum += weight;
        ++count;
      });
      ASSERT_GE(count, 1) << mode;
      ASSERT_LE(count, taps.most()) << mode;
      ASSERT_NEAR(sum, 1, 1e-12) << mode;
    }
  });
}

TEST(ResampleTaps, DoNotGoBackFromOneOutputToTheNext) {
  for_all_taps([](const ResampleTaps& taps, const char* mode) {
    int64_t low = 0, high = 0;
    for (int64_t o = 0; o < taps.out; ++o) {
      int64_t first = taps.in, last = -1;
      taps.of(o, [&](int64_t at, double) {
        first = std::min(first, at);
        last = std::max(last, at);
      });
      ASSERT_GE(first, low) << mode;
      ASSERT_GE(last, high) << mode;
      low = first;
      high = last;
    }
  });
}

}  // namespace
}  // namespace treadle
