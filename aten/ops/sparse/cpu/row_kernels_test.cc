// The vector code of sparse rows, on every target of this machine: sums of products of rows of all
// short lengths, columns whose flags are set, and the rows of entries.
//
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "aten/backend/cpu/testing_targets.h"
#include "aten/ops/sparse/cpu/entry_rows.h"
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

// Rows of many lengths, some without entries.
struct Rows {
  explicit Rows(std::mt19937& random) {
    for (int64_t r = 0; r < 300; ++r) {
      const int64_t n = random() % 3 == 0 ? 0 : static_cast<int64_t>(random() % 30);
      row.insert(row.end(), static_cast<size_t>(n), r);
      offsets.push_back(static_cast<int64_t>(row.size()));
    }
  }
  int64_t rows() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t count() const { return static_cast<int64_t>(row.size()); }
  simd::EntryRows at(int64_t first) const { return {offsets.data(), rows(), count(), first}; }
  std::vector<int64_t> offsets{0}, row;
};

TEST_P(RowKernels, RowsOfEntries) {
  const Rows of(random_);
  const simd::EntryRowKernels kernels = simd::entry_row_kernels();
  for (const int64_t piece : {int64_t{1}, int64_t{7}, int64_t{64}, int64_t{500}, of.count()}) {
    constexpr int64_t kGuard = -7;
    std::vector<int64_t> found(of.row.size() + 1, kGuard), starts(of.offsets.size(), kGuard);
    for (int64_t first = 0; first < of.count(); first += piece) {
      const int64_t last = std::min(of.count(), first + piece);
      simd::EntryRows rows = of.at(first);
      ASSERT_TRUE(kernels.write_rows(rows, first, last, found.data() + first));
      ASSERT_EQ(found[last], kGuard) << "behind a piece of " << piece;
      ASSERT_EQ(kernels.write_starts(of.row.data(), first, last, of.rows(), starts.data()), last);
    }
    found.pop_back();
    EXPECT_EQ(found, of.row) << piece;
    // Rows behind the last entry are the caller's.
    for (int64_t r = of.row.back() + 1; r <= of.rows(); ++r) {
      EXPECT_EQ(starts[r], kGuard);
      starts[r] = of.count();
    }
    EXPECT_EQ(starts, of.offsets) << piece;
  }
}

TEST_P(RowKernels, WrongRowsOfEntries) {
  const Rows of(random_);
  const simd::EntryRowKernels kernels = simd::entry_row_kernels();
  std::vector<int64_t> found(of.row.size()), starts(of.offsets.size());
  for (const int64_t wrong : {int64_t{-1}, int64_t{300}, INT64_MIN, INT64_MAX}) {
    for (const int64_t entry : {int64_t{0}, int64_t{1}, int64_t{100}, of.count() - 1}) {
      Rows changed = of;
      changed.row[entry] = wrong;
      EXPECT_EQ(kernels.write_starts(changed.row.data(), 0, of.count(), of.rows(), starts.data()),
                entry);
    }
    for (const size_t row : {size_t{1}, size_t{150}, size_t{290}}) {
      Rows changed = of;
      changed.offsets[row] = wrong == 300 ? of.count() + 1 : wrong;
      simd::EntryRows rows = changed.at(0);
      EXPECT_FALSE(kernels.write_rows(rows, 0, of.count(), found.data())) << wrong << " " << row;
    }
  }
}

template <class V>
void expect_packed(const Rows& of, std::mt19937& random) {
  const simd::PackedEntryKernels<V> kernels = simd::packed_entry_kernels<V>();
  std::vector<V> values, found(of.row.size());
  for (int64_t i = 0; i < of.count(); ++i) values.push_back(static_cast<V>(random()));
  for (const int64_t piece : {int64_t{3}, int64_t{100}, of.count()}) {
    std::vector<uint64_t> words(of.row.size() + simd::kPadding);
    for (int64_t first = 0; first < of.count(); first += piece) {
      simd::EntryRows rows = of.at(first);
      const int64_t last = std::min(of.count(), first + piece);
      ASSERT_TRUE(kernels.pack(rows, first, last, values.data(), words.data() + first));
    }
    kernels.unpack(words.data(), of.count(), found.data());
    EXPECT_EQ(found, values);
    EXPECT_TRUE(
        std::equal(of.row.begin(), of.row.end(), words.begin(),
                   [](int64_t row, uint64_t word) { return static_cast<uint64_t>(row) == word; }));
  }
}

TEST_P(RowKernels, PackedEntries) {
  const Rows of(random_);
  expect_packed<uint8_t>(of, random_);
  expect_packed<uint16_t>(of, random_);
  expect_packed<uint32_t>(of, random_);
}

INSTANTIATE_TEST_SUITE_P(Targets, RowKernels,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& of) { return std::string(hwy::TargetName(of.param)); });

}  // namespace
}  // namespace treadle
