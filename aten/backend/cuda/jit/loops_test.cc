// The loops of generated kernels, run by the emulator's threads with the backend's own arguments:
// packs and tails, offsets of strided operands, and folds in every split, each repeated bit by bit.
//
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/cuda_emulator/device_code.h"

#include <numeric>
#include <random>

#include "aten/backend/cuda/device/reduce.cuh"
#include "aten/backend/cuda/jit/geometry.h"

namespace treadle::simd::N_CUDA {

struct Axpy {  // self + alpha * other
  template <class V>
  static auto eval(V self, V other, V alpha) {
    return self + alpha * other;
  }
};
struct Less {
  template <class V>
  static auto eval(V a, V b) {
    return a < b;
  }
};
struct Sum {
  static constexpr bool starts = true;
  template <class V>
  static auto init() {
    return constant<V>(0);
  }
  template <class V>
  static auto step(V acc, V x) {
    return acc + x;
  }
  template <class V>
  static auto combine(V a, V b) {
    return a + b;
  }
  template <class V>
  static auto final(V acc, V) {
    return acc;
  }
};
struct Largest {
  static constexpr bool starts = false;
  template <class V>
  static auto step(V acc, V x) {
    return maximum(acc, x);
  }
  template <class V>
  static auto combine(V a, V b) {
    return maximum(a, b);
  }
  template <class V>
  static auto final(V acc, V) {
    return acc;
  }
};

}  // namespace treadle::simd::N_CUDA

namespace treadle::cuda {
namespace {

void run_blocks(unsigned blocks_x, unsigned blocks_y, unsigned threads,
                const std::function<void()>& kernel) {
  emulator::run_grid(dim3(blocks_x, blocks_y), dim3(threads), 0, kernel);
}

using simd::Axpy;
using simd::Largest;
using simd::Less;
using simd::Sum;

template <class T>
std::vector<T> numbers(size_t n) {
  std::mt19937 random(7);
  std::vector<T> v(n);
  for (T& x : v) x = static_cast<T>(static_cast<int>(random() % 200) - 100);
  return v;
}

TEST(Loops, ContiguousOperandsInPacksAndATail) {
  constexpr unsigned kThreads = 8;
  for (const unsigned n : {1u, 31u, 128u, 129u, 300u}) {
    const auto a = numbers<float>(n), b = numbers<float>(n);
    alignas(16) float x[300], y[300], out[300];
    std::copy(a.begin(), a.end(), x);
    std::copy(b.begin(), b.end(), y);
    run_blocks((n + kThreads * 16 - 1) / (kThreads * 16), 1, kThreads, [&] {
      contiguous<Axpy, 4, 4>(n, out, Numbers<float, 1>{{2}}, Held<float, false, 4, 4>{x},
                             Held<float, false, 4, 4>{y});
    });
    for (unsigned i = 0; i < n; ++i) ASSERT_EQ(out[i], a[i] + 2 * b[i]) << n << " " << i;
    // One operand is one element, and the result is a truth value.
    bool less[300];
    run_blocks((n + kThreads * 4 - 1) / (kThreads * 4), 1, kThreads, [&] {
      contiguous<Less, 4, 1>(n, less, Numbers<float, 0>{}, Held<float, false, 4, 1>{x},
                             Held<float, true, 4, 1>{y});
    });
    for (unsigned i = 0; i < n; ++i) ASSERT_EQ(less[i], a[i] < b[0]);
  }
}

template <class G>
G layout(const StructBytes& bytes) {
  EXPECT_EQ(bytes.bytes().size(), sizeof(G));
  G g;
  std::memcpy(&g, bytes.bytes().data(), sizeof g);
  return g;
}

template <class Index>
void check_strided() {
  // out[i][j][k] = a[k][j][i] + 3 b[j], where b is of int32 and a of int64.
  constexpr int64_t sizes[] = {3, 5, 7};
  constexpr unsigned n = 105, kThreads = 8;
  constexpr bool narrow = sizeof(Index) == 4;
  const auto a = numbers<int64_t>(n);
  const auto b = numbers<int32_t>(5);
  std::vector<int64_t> out(n);
  const int64_t strides[3][3] = {{35 * 8, 7 * 8, 8}, {8, 3 * 8, 15 * 8}, {0, 4, 0}};
  StructBytes bytes;
  for (const int64_t size : sizes) bytes.add_divisor(size, narrow);
  for (const auto& operand : strides)
    for (const int64_t s : operand) {
      if (narrow)
        bytes.add(static_cast<int32_t>(s));
      else
        bytes.add(s);
    }
  const auto g = layout<Geometry<Index, 3, 3>>(bytes);
  run_blocks((n + kThreads * 4 - 1) / (kThreads * 4), 1, kThreads, [&] {
    strided<Axpy, int64_t, 4>(g, Index(n), reinterpret_cast<char*>(out.data()),
                              Numbers<int64_t, 1>{{3}},
                              Gathered<int64_t, 4>{reinterpret_cast<const char*>(a.data())},
                              Gathered<int32_t, 4>{reinterpret_cast<const char*>(b.data())});
  });
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 5; ++j)
      for (int64_t k = 0; k < 7; ++k)
        ASSERT_EQ(out[static_cast<size_t>(i * 35 + j * 7 + k)],
                  a[static_cast<size_t>(k * 15 + j * 3 + i)] + 3 * b[static_cast<size_t>(j)]);
}
TEST(Loops, StridedOperandsOfTwoTypes) {
  check_strided<unsigned>();
  check_strided<unsigned long long>();
}

TEST(Loops, DivisorsAreExactBelowTwoToThe31) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    const uint32_t d = 1 + random() % (i % 2 ? 0x7fffffffu : 1000u), n = random() >> 1;
    ASSERT_EQ(FastDivisor(d).quotient(n), n / d) << n << " / " << d;
    ASSERT_EQ(FastDivisor(d).quotient(0x7fffffffu / d * d), 0x7fffffffu / d);
  }
}

// Sums `outputs` rows (or columns) of `count` elements; in pieces, whose sums are then joined.
template <class Function, class In, class T, bool rows, bool wide>
std::vector<T> folded(const std::vector<In>& data, unsigned outputs, unsigned count, int width,
                      unsigned pieces) {
  const auto item = static_cast<int64_t>(sizeof(In));
  std::vector<In> aligned_data(data.size() + 16);
  auto* in =
      reinterpret_cast<In*>((reinterpret_cast<uintptr_t>(aligned_data.data()) + 15) / 16 * 16);
  std::copy(data.begin(), data.end(), in);
  const auto geometry = [&](int64_t kept_in, int64_t folded_size, int64_t folded_in) {
    StructBytes g;
    g.add_divisor(outputs, true);
    g.add(uint32_t{0});
    g.add(kept_in);
    g.add(static_cast<int64_t>(sizeof(T)));
    g.add_divisor(folded_size, true);
    g.add(uint32_t{0});
    g.add(folded_in);
    return layout<FoldGeometry<unsigned, 1, 1>>(g);
  };
  const auto g = rows ? geometry(count * item, count, item) : geometry(item, count, outputs * item);
  const auto* from = reinterpret_cast<const char*>(in);
  std::vector<T> out(outputs), parts(outputs * pieces);
  const unsigned blocks =
      (outputs + static_cast<unsigned>(width) - 1) / static_cast<unsigned>(width);
  if (pieces == 1) {
    run_blocks(blocks, 1, kFoldThreads, [&] {
      fold<Function, T, false, rows, wide, true, In, T>(
          g, from, reinterpret_cast<char*>(out.data()), outputs, count, count, width, T(count));
    });
    return out;
  }
  const unsigned piece = (count / pieces + 15) / 16 * 16;
  run_blocks(blocks, (count + piece - 1) / piece, kFoldThreads, [&] {
    fold<Function, T, false, rows, wide, false, In, T>(
        g, from, reinterpret_cast<char*>(parts.data()), outputs, count, piece, width, T(count));
  });
  const unsigned made = (count + piece - 1) / piece;
  const auto joined = geometry(made * static_cast<int64_t>(sizeof(T)), made, sizeof(T));
  run_blocks(outputs, 1, kFoldThreads, [&] {
    fold<Function, T, true, true, false, true, T, T>(
        joined, reinterpret_cast<const char*>(parts.data()), reinterpret_cast<char*>(out.data()),
        outputs, made, made, 1, T(count));
  });
  return out;
}

TEST(Loops, FoldsOfRowsAndColumnsInEverySplit) {
  for (const unsigned count : {1u, 5u, 64u, 1000u}) {
    const unsigned outputs = 3;
    const auto data = numbers<int32_t>(outputs * count);
    std::vector<std::vector<int64_t>> rows, columns, largest;
    const auto wide = [](const auto& v) { return std::vector<int64_t>(v.begin(), v.end()); };
    for (const unsigned pieces : {1u, 3u}) {
      if (count < 64 && pieces > 1) continue;
      for (const int width : {1, 32})
        rows.push_back(
            folded<Sum, int32_t, int64_t, true, false>(data, outputs, count, width, pieces));
      columns.push_back(
          folded<Sum, int32_t, int64_t, false, false>(data, outputs, count, 32, pieces));
      largest.push_back(
          wide(folded<Largest, int32_t, int32_t, true, false>(data, outputs, count, 1, pieces)));
      if (count % 4 != 0) continue;  // rows are not aligned
      rows.push_back(folded<Sum, int32_t, int64_t, true, true>(data, outputs, count, 1, pieces));
      largest.push_back(
          wide(folded<Largest, int32_t, int32_t, true, true>(data, outputs, count, 1, pieces)));
    }
    for (unsigned o = 0; o < outputs; ++o) {
      int64_t row = 0, column = 0, most = INT32_MIN;
      for (unsigned i = 0; i < count; ++i) {
        row += data[o * count + i];
        column += data[i * outputs + o];
        most = std::max<int64_t>(most, data[o * count + i]);
      }
      for (const auto& v : rows) ASSERT_EQ(v[o], row);
      for (const auto& v : columns) ASSERT_EQ(v[o], column);
      for (const auto& v : largest) ASSERT_EQ(v[o], most);
    }
  }
}

TEST(Loops, FoldsGiveTheSameBitsHoweverElementsAreRead) {
  std::vector<float> data(1000);
  std::iota(data.begin(), data.end(), 0.1f);
  const auto wide = folded<Sum, float, float, true, true>(data, 1, 1000, 1, 1);
  const auto narrow = folded<Sum, float, float, true, false>(data, 1, 1000, 1, 1);
  EXPECT_EQ(wide, narrow);
  EXPECT_NEAR(wide[0], 499600.0f, 1.0f);
}

TEST(Loops, AnyByteButZeroIsTrue) {
  constexpr unsigned n = 40;
  alignas(16) uint8_t bytes[n];
  int64_t truths = 0;
  for (unsigned i = 0; i < n; ++i)
    truths += (bytes[i] = static_cast<uint8_t>(i * 37 % 5 * 51)) != 0;
  const auto* const bools = reinterpret_cast<const bool*>(bytes);
  int64_t out[n];
  run_blocks(2, 1, 4, [&] {
    contiguous<Axpy, 4, 2>(n, out, Numbers<int64_t, 1>{{2}}, Held<bool, false, 4, 2>{bools},
                           Held<bool, true, 4, 2>{bools + 4});
  });
  for (unsigned i = 0; i < n; ++i) ASSERT_EQ(out[i], (bytes[i] != 0) + 2 * (bytes[4] != 0)) << i;
  EXPECT_EQ((fold_row<Sum, int64_t, false, true>(bools, 0u, n, 0, 1).value.v), truths);
  EXPECT_EQ((fold_row<Sum, int64_t, false, false>(bools, 0u, n, 0, 1).value.v), truths);
}

TEST(Loops, NanIsTheLargest) {
  std::vector<float> data(500, 1.0f);
  data[333] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(folded<Largest, float, float, true, false>(data, 1, 500, 1, 1)[0]));
}

}  // namespace
}  // namespace treadle::cuda
