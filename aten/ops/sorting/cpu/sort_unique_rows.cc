// The distinct rows of a matrix: the first occurrence of each, the inverse index of each row, and
// the count of each. The runs of equal elements of a tensor: the value of each, and the same.
//
//   [[2, 1], [0, 0], [2, 1]]  ->  first [1, 0], inverse [1, 0, 1], counts [1, 2]
//   [2, 2, 0, 2]              ->  values [2, 0, 2], inverse [0, 0, 1, 2], counts [2, 1, 1]
//
// `sorted` puts the rows in lexicographic order first; otherwise only neighbours are compared. A
// row with a NaN equals no other.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <vector>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/_unique_rows.h"
#include "aten/ops/_unique_runs.h"
#include "aten/ops/clone.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/sorting/cpu/sort_key.h"

namespace treadle::cpu {
namespace {

// The runs of equal rows. A run's number is its place among them.
class Runs {
 public:
  // begins(from, to, flags): for row i in [from, to), flags[i - from] is whether it begins a run.
  template <class F>
  Runs(int64_t rows, F&& begins) : rows_(rows), bits_(ceil_of(rows, kWord)) {
    before_.resize(ceil_of(rows, kChunk) + 1);
    for_chunks([&](int64_t chunk, int64_t first, int64_t last) {
      int64_t count = 0;
      for (int64_t word = first; word < last; ++word) {
        uint8_t flags[kWord] = {};
        const int64_t row = word * kWord;
        begins(row, std::min(rows_, row + kWord), flags);
        bits_[word] = packed(flags);
        count += std::popcount(bits_[word]);
      }
      before_[chunk + 1] = count;
    });
    std::partial_sum(before_.begin(), before_.end(), before_.begin());
  }

  int64_t count() const { return before_.back(); }

  // out[run] = value(the row that begins it).
  template <class T, class F>
  void write_first(T* out, F&& value) const {
    for_chunks([&](int64_t chunk, int64_t from, int64_t to) {
      T* next = out + before_[chunk];
      for (int64_t word = from; word < to; ++word) {
        const int64_t row = word * kWord;
        if (bits_[word] == ~uint64_t{0}) {  // a loop of vectors
          for (int64_t i = 0; i < kWord; ++i) next[i] = value(row + i);
          next += kWord;
          continue;
        }
        uint64_t bits = bits_[word];
        if (std::popcount(bits) < kWord / 4) {
          for (; bits != 0; bits &= bits - 1) *next++ = value(row + std::countr_zero(bits));
          continue;
        }
        // Each value is written, and written over unless its row begins a run.
        for (int64_t i = 0; bits != 0; ++i, bits >>= 1) {
          *next = value(row + i);
          next += bits & 1;
        }
      }
    });
  }
  Tensor first() const {
    const Tensor out = empty_cpu({count()}, ScalarType::Int64);
    write_first(out.data_as<int64_t>(), [](int64_t row) { return row; });
    return out;
  }
  // How many rows each has.
  Tensor lengths() const {
    const Tensor out = first();
    int64_t* const of_run = out.data_as<int64_t>();
    const int64_t last = count() - 1;
    for (int64_t run = 0; run < last; ++run) of_run[run] = of_run[run + 1] - of_run[run];
    if (last >= 0) of_run[last] = rows_ - of_run[last];
    return out;
  }

  // f(row, run), for each row.
  template <class F>
  void for_each_row(F&& f) const {
    for_chunks([&](int64_t chunk, int64_t from, int64_t to) {
      int64_t run = before_[chunk] - 1;
      for (int64_t word = from; word < to; ++word) {
        const int64_t row = word * kWord, count = std::min(kWord, rows_ - row);
        uint64_t bits = bits_[word];
        for (int64_t i = 0; i < count; ++i, bits >>= 1) {
          run += static_cast<int64_t>(bits & 1);
          f(row + i, run);
        }
      }
    });
  }

 private:
  static constexpr int64_t kWord = 64, kChunk = kGrain;

  static size_t ceil_of(int64_t n, int64_t by) { return static_cast<size_t>((n + by - 1) / by); }

  // f(chunk, first word, end), in parallel.
  template <class F>
  void for_chunks(F&& f) const {
    constexpr int64_t kWords = kChunk / kWord;
    const int64_t words = static_cast<int64_t>(bits_.size());
    parallel_chunks(static_cast<int64_t>(before_.size()) - 1, [&](int64_t chunk) {
      f(chunk, chunk * kWords, std::min(words, (chunk + 1) * kWords));
    });
  }

  // Bit i is flags[i].
  static uint64_t packed(const uint8_t* flags) {
    uint64_t bits = 0;
    for (int64_t byte = 0; byte < kWord / 8; ++byte) {
      uint64_t eight = 0;
      for (int64_t i = 0; i < 8; ++i)
        eight |= static_cast<uint64_t>(flags[8 * byte + i]) << (8 * i);
      // Flag i, which is bit 8 * i, goes to bit 56 + i.
      bits |= (eight * 0x0102040810204080) >> 56 << (8 * byte);
    }
    return bits;
  }

  int64_t rows_;
  std::vector<uint64_t> bits_;   // whether each row begins a run
  std::vector<int64_t> before_;  // how many runs begin before each chunk
};

Tensor none() { return empty_cpu({0}, ScalarType::Int64); }

template <class T>
bool differ(const T& a, const T& b) {
  return !(element_value(a) == element_value(b));
}

template <class T>
std::tuple<Tensor, Tensor, Tensor> unique_rows_cpu(const Tensor& self, bool sorted,
                                                   bool return_inverse, bool return_counts) {
  // A copy, as sorting must find the same rows at each comparison, and other threads may write.
  const Tensor input =
      sorted ? aten::clone(self, MemoryFormat::Contiguous) : aten::contiguous(self);
  const int64_t rows = input.size(0), width = input.size(1);
  const T* const from = input.data_as<T>();
  std::vector<int64_t> order(static_cast<size_t>(sorted ? rows : 0));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    for (int64_t k = 0; k < width; ++k) {
      const auto x = ordered_key(from[a * width + k]), y = ordered_key(from[b * width + k]);
      if (x != y) return x < y;
    }
    return a < b;
  });
  const auto row_at = [&](int64_t i) { return sorted ? order[i] : i; };

  const Runs runs(rows, [&](int64_t begin, int64_t end, uint8_t* flags) {
    if (begin == 0 && end > 0) flags[0] = 1;
    for (int64_t i = std::max<int64_t>(1, begin); i < end; ++i) {
      const T *const a = from + row_at(i) * width, *const b = from + row_at(i - 1) * width;
      flags[i - begin] = !std::equal(a, a + width, b, std::not_fn(differ<T>));
    }
  });

  const Tensor first = empty_cpu({runs.count()}, ScalarType::Int64);
  const Tensor inverse = empty_cpu({return_inverse ? rows : 0}, ScalarType::Int64);
  runs.write_first(first.data_as<int64_t>(), row_at);
  if (return_inverse) {
    int64_t* const to = inverse.data_as<int64_t>();
    runs.for_each_row([&](int64_t i, int64_t run) { to[row_at(i)] = run; });
  }
  return {first, inverse, return_counts ? runs.lengths() : none()};
}

template <class T>
std::tuple<Tensor, Tensor, Tensor> unique_runs_cpu(const Tensor& self, bool return_inverse,
                                                   bool return_counts) {
  const Tensor input = aten::contiguous(self);
  const T* const from = input.data_as<T>();
  const Runs runs(input.numel(), [&](int64_t begin, int64_t end, uint8_t* flags) {
    if (begin == 0 && end > 0) flags[0] = 1;
    for (int64_t i = std::max<int64_t>(1, begin); i < end; ++i)
      flags[i - begin] = differ(from[i], from[i - 1]);
  });
  const Tensor values = empty_cpu({runs.count()}, self.dtype());
  runs.write_first(values.data_as<T>(), [from](int64_t i) { return element_value(from[i]); });
  const Tensor inverse = return_inverse ? empty_cpu(self.sizes(), ScalarType::Int64) : none();
  if (return_inverse) {
    int64_t* const to = inverse.data_as<int64_t>();
    runs.for_each_row([to](int64_t i, int64_t run) { to[i] = run; });
  }
  return {values, inverse, return_counts ? runs.lengths() : none()};
}

const auto unique_rows_registered = register_kernels<aten::ops::_unique_rows, DeviceType::CPU>(
    []<class T>() { return &unique_rows_cpu<T>; }, "unique_rows_cpu");
const auto unique_runs_registered = register_kernels<aten::ops::_unique_runs, DeviceType::CPU>(
    []<class T>() { return &unique_runs_cpu<T>; }, "unique_runs_cpu");

}  // namespace
}  // namespace treadle::cpu
