// The vector code of sparse rows, on every target of this machine: sums of products of rows of all
// short lengths, and columns whose flags are set.
//
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "aten/backend/cpu/testing_targets.h"
#include "aten/ops/sparse/cpu/row_flags.h"
#include "aten/ops/sparse/cpu/row_products.h"

namespace treadle {
namespace {

class RowKernels : public testing::TestWithParam<int64_t> {
 protected:
  // Row r has r entries, up to `rows` - 1 of them, of a vector of `width` elements.
  template <class T>
  struct Matrix {
    Matrix(int64_t rows, int64_t width, std::mt19937& random) {
      std::uniform_real_distribution<T> draw(-1, 1);
      for (int64_t c = 0; c < width; ++c) x.push_back(draw(random));
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < r; ++i) {
          columns.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(width)));
          values.push_back(draw(random));
        }
        offsets.push_back(static_cast<int64_t>(columns.size()));
      }
    }
    int64_t rows() const { return static_cast<int64_t>(offsets.size()) - 1; }
    // By both ways to read the vector, which give the same.
    int64_t multiply(int64_t run, std::vector<T>& out) const {
      out.assign(static_cast<size_t>(rows()), T(-7));
      std::vector<T> twin = out;
      const simd::RowProducts<T> of{offsets.data(),
                                    rows(),
                                    columns.data(),
                                    values.data(),
                                    static_cast<int64_t>(columns.size()),
                                    x.data(),
                                    static_cast<int64_t>(x.size())};
      const int64_t done = simd::sum_row_products<T>(true)(of, run, out.data());
      EXPECT_EQ(simd::sum_row_products<T>(false)(of, run, twin.data()), done);
      EXPECT_EQ(out, twin);
      return done;
    }
    std::vector<int64_t> offsets{0}, columns;
    std::vector<T> values, x;
  };

  template <class T>
  void expect_products(int64_t run) {
    const Matrix<T> matrix(70, 50, random_);
    std::vector<T> out;
    ASSERT_EQ(matrix.multiply(run, out), matrix.rows());
    for (int64_t r = 0; r < matrix.rows(); ++r) {
      double sum = 0;
      for (int64_t i = matrix.offsets[r]; i < matrix.offsets[r + 1]; ++i)
        sum += double{matrix.values[i]} * double{matrix.x[matrix.columns[i]]};
      EXPECT_NEAR(out[r], sum, sizeof(T) == 4 ? 2e-6 : 1e-14) << "row " << r;
    }
  }
  // The row of an entry whose column, or whose offset, is wrong is named.
  template <class T>
  void expect_refusals() {
    std::vector<T> out;
    for (const int64_t wrong : {int64_t{-1}, int64_t{50}, int64_t{1} << 32, INT64_MIN}) {
      for (const int64_t row : {1, 3, 4, 5, 8, 9, 20, 69}) {
        Matrix<T> matrix(70, 50, random_);
        matrix.columns[matrix.offsets[row + 1] - 1] = wrong;
        EXPECT_EQ(matrix.multiply(64, out), row) << "column " << wrong;
        matrix = Matrix<T>(70, 50, random_);
        matrix.offsets[row + 1] = wrong == 50 ? INT64_MAX : wrong;
        if (wrong != int64_t{1} << 32) {
          EXPECT_EQ(matrix.multiply(64, out), row) << "offset " << wrong;
        }
      }
    }
  }

  const simd::OnTarget on_target_{GetParam()};
  std::mt19937 random_{1};
};

TEST_P(RowKernels, Products) {
  for (const int64_t run : {4, 24, 64, 1000}) {
    expect_products<float>(run);
    expect_products<double>(run);
  }
}

TEST_P(RowKernels, WrongIndices) {
  expect_refusals<float>();
  expect_refusals<double>();
}

TEST_P(RowKernels, Flags) {
  constexpr uint32_t kGroups = 20, kWidth = kGroups * simd::kFlags;
  for (const double share : {0.0, 0.01, 0.05, 0.1, 0.3, 0.9, 1.0}) {
    std::vector<uint8_t> flags(kWidth);
    std::vector<uint32_t> expected;
    // Those of other groups stay.
    const uint32_t first = 2, last = 17;
    for (uint32_t c = 0; c < kWidth; ++c) {
      flags[c] = static_cast<double>(random_() % 1000) < 1000 * share;
      if (flags[c] && c >= first * simd::kFlags && c < last * simd::kFlags) expected.push_back(c);
    }
    std::vector<uint8_t> left = flags;
    std::fill(left.begin() + first * simd::kFlags, left.begin() + last * simd::kFlags, 0);
    constexpr uint32_t kGuard = 0xabcdefu;
    std::vector<uint32_t> found(expected.size() + simd::kFlags, kGuard);
    const uint32_t* const end = simd::take_columns(flags.data(), first, last, found.data());
    ASSERT_EQ(end - found.data(), static_cast<int64_t>(expected.size())) << share;
    for (size_t i = expected.size() + 16; i < found.size(); ++i) EXPECT_EQ(found[i], kGuard);
    found.resize(expected.size());
    EXPECT_EQ(found, expected) << share;
    EXPECT_EQ(flags, left) << share;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, RowKernels,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& of) { return std::string(hwy::TargetName(of.param)); });

}  // namespace
}  // namespace treadle
