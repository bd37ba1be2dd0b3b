// Products with weights of few bits, on every target of this machine, against sums in float64: at
// all numbers of rows, blocks and terms for which the loops have a special case. No other memory is
// written.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/matmul/cpu/few_bit_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "aten/backend/cpu/testing_targets.h"

namespace treadle {
namespace {

constexpr float kGuard = -7.5f;
constexpr int64_t kGap = 3;  // elements between the rows of a result

class FewBitLoops : public testing::TestWithParam<int64_t> {
 protected:
  std::vector<float> numbers(int64_t count) {
    std::uniform_real_distribution<float> draw(-1, 1);
    std::vector<float> made(static_cast<size_t>(count));
    std::generate(made.begin(), made.end(), [&] { return draw(random_); });
    return made;
  }
  template <class T>
  std::vector<T> bytes(int64_t count) {
    std::vector<T> made(static_cast<size_t>(count));
    std::generate(made.begin(), made.end(), [&] { return static_cast<T>(random_()); });
    return made;
  }
  static std::vector<float> result(int64_t rows, int64_t columns) {
    return std::vector<float>(static_cast<size_t>(rows * (columns + kGap)), kGuard);
  }
  // Each element is expected(row, column), but for an error in parts of `magnitude`; gaps are left.
  template <class F>
  static void expect_result(const std::vector<float>& out, int64_t rows, int64_t columns,
                            double magnitude, F&& expected) {
    for (int64_t r = 0; r < rows; ++r) {
      const float* const row = out.data() + r * (columns + kGap);
      for (int64_t j = 0; j < columns; ++j)
        ASSERT_NEAR(row[j], expected(r, j), 1e-6 * magnitude) << r << ' ' << j;
      for (int64_t j = columns; j < columns + kGap; ++j) ASSERT_EQ(row[j], kGuard);
    }
  }

  template <class S>
  void expect_int4(int64_t rows, int64_t blocks, int64_t terms, int64_t group) {
    SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(blocks) + " blocks, " +
                 std::to_string(terms) + " terms by " + std::to_string(group));
    const simd::FewBitLoops& loops = simd::few_bit_loops();
    const int64_t columns = blocks * simd::kInt4Rows, groups = terms / group;
    const int64_t panel = rows > loops.few_rows ? loops.panel : rows;
    const std::vector<float> a = numbers(rows * terms);
    std::vector<float> panels(a.size());
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t first = r / panel * panel, count = std::min(panel, rows - first);
      for (int64_t k = 0; k < terms; ++k)
        panels[first * terms + k * count + r - first] = a[r * terms + k];
    }
    const auto weights = bytes<uint8_t>(columns * terms / 2);
    std::vector<S> scales;
    for (const float x : numbers(groups * columns * 2)) scales.push_back(static_cast<S>(x));
    std::vector<float> out = result(rows, columns);
    const simd::Int4Product<S> product{panels.data(),  rows,       panel,         terms,
                                       weights.data(), blocks,     scales.data(), group,
                                       2 * columns,    out.data(), columns + kGap};
    if constexpr (std::is_same_v<S, float>)
      loops.int4(product);
    else
      loops.int4_bfloat16(product);
    expect_result(out, rows, columns, 8.0 * static_cast<double>(terms), [&](int64_t r, int64_t j) {
      double sum = 0;
      for (int64_t k = 0; k < terms; ++k) {
        const int64_t unit = j / 16 * (terms / 8) + k / 8;
        const int byte = weights[unit * simd::kInt4Unit + j % 16 * 4 + k % 8 / 2];
        const double q = (k % 2 ? byte >> 4 : byte & 15) - 8;
        const S* const of_group = scales.data() + (k / group * columns + j) * 2;
        const double scale = static_cast<float>(of_group[0]),
                     zero = static_cast<float>(of_group[1]);
        sum += a[r * terms + k] * (q * scale + zero);
      }
      return sum;
    });
  }

  void expect_int8(int64_t rows, int64_t columns, int64_t terms) {
    SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(columns) + " columns, " +
                 std::to_string(terms) + " terms");
    const std::vector<float> a = numbers(rows * terms), scales = numbers(columns);
    const auto weights = bytes<int8_t>(columns * terms);
    std::vector<float> out = result(rows, columns);
    simd::few_bit_loops().int8({a.data(), rows, terms, weights.data(), columns, scales.data(),
                                out.data(), columns + kGap});
    const double magnitude = 128.0 * static_cast<double>(terms);
    expect_result(out, rows, columns, magnitude, [&](int64_t r, int64_t j) {
      double sum = 0;
      for (int64_t k = 0; k < terms; ++k)
        sum += a[r * terms + k] * static_cast<double>(weights[j * terms + k]);
      return sum * scales[j];
    });
  }

 private:
  const simd::OnTarget on_target_{GetParam()};
  std::mt19937 random_{1};
};

TEST_P(FewBitLoops, Int4) {
  for (int64_t rows = 1; rows <= 15; ++rows) {
    for (const int64_t blocks : {1, 2, 3, 4, 5, 7}) {
      expect_int4<float>(rows, blocks, 64, 32);
      expect_int4<BFloat16>(rows, blocks, 64, 64);
    }
    expect_int4<float>(rows, 5, 416, 32);
    expect_int4<BFloat16>(rows, 5, 768, 256);
  }
}

TEST_P(FewBitLoops, Int8) {
  for (int64_t rows = 1; rows <= 9; ++rows) {
    for (const int64_t columns : {1, 3, 4, 5, 8}) {
      for (const int64_t terms : {1, 3, 4, 15, 16, 17, 63, 5000}) expect_int8(rows, columns, terms);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FewBitLoops,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& of) { return std::string(hwy::TargetName(of.param)); });

}  // namespace
}  // namespace treadle
