// The entries of a compressed sparse matrix by columns.
//
// Entries first go into buckets of neighbouring columns, in the order of rows, and then to their
// places. A matrix of many columns written at once would touch as many places of memory in turn,
// which is more than caches hold.
//
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <numeric>

#include "aten/backend/cpu/element_bits.h"
#include "aten/ops/_csr_transposed.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/sparse/cpu/compressed_rows.h"

namespace treadle::cpu {
namespace {

// Where the entries of a matrix are written by columns.
struct ByColumns {
  int64_t* starts;  // of columns, and behind the last one the number of entries
  int64_t* rows;
};

class Transposition {
 public:
  // RuntimeError for indices that are none of a matrix of so many columns.
  Transposition(const Tensor& crow, const Tensor& col, int64_t columns)
      : rows_(crow.numel() - 1), columns_(columns), count_(col.numel()) {
    check<ErrorKind::NotImplemented>(rows_ <= kMost && columns <= kMost, OpName("transpose"),
                                     "expected a matrix of at most 2^32 rows and columns, got ",
                                     rows_, " and ", columns);
    const int64_t buckets = count_ < kFew ? 1 : kBuckets;
    while ((columns >> shift_) >= buckets) ++shift_;
    starts_.assign(static_cast<size_t>(columns >> shift_) + 2, 0);
    read(crow.data_as<int64_t>(), col.data_as<int64_t>());
  }

  // Writes the entries and their values, which are `from` by rows.
  template <class V>
  void write(const V* from, const ByColumns& to, V* values) const {
    std::vector<Entry> entries(static_cast<size_t>(count_));
    std::vector<V> moved(static_cast<size_t>(count_));
    std::vector<int64_t> next = starts_;
    size_t i = 0;
    for (size_t r = 0; r < ends_.size(); ++r) {
      for (const auto end = static_cast<size_t>(ends_[r]); i < end; ++i) {
        const auto at = static_cast<size_t>(next[column_[i] >> shift_]++);
        entries[at] = {static_cast<uint32_t>(r), column_[i]};
        moved[at] = from[i];
      }
    }
    to.starts[columns_] = count_;
    const auto buckets = static_cast<int64_t>(starts_.size()) - 1;
    parallel_for(buckets, grain_for(4 * (count_ / buckets + 1)), [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        // The entries of this bucket fill the places from its start on.
        int64_t* const starts = to.starts + (b << shift_);
        const int64_t width = std::min(int64_t{1} << shift_, columns_ - (b << shift_));
        if (width <= 0) continue;
        const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << shift_) - 1);
        std::vector<int64_t> place(static_cast<size_t>(width) + 1, 0);
        for (int64_t k = starts_[b]; k < starts_[b + 1]; ++k)
          ++place[(entries[k].column & mask) + 1];
        place[0] = starts_[b];
        std::partial_sum(place.begin(), place.end(), place.begin());
        std::copy(place.begin(), place.end() - 1, starts);
        for (int64_t k = starts_[b]; k < starts_[b + 1]; ++k) {
          const int64_t at = place[entries[k].column & mask]++;
          to.rows[at] = entries[k].row;
          values[at] = moved[k];
        }
      }
    });
  }

 private:
  struct Entry {
    uint32_t row, column;
  };
  static constexpr int64_t kMost = int64_t{1} << 32, kBuckets = 256;
  static constexpr int64_t kFew = 8192;  // entries that stay in a cache

  // Copies the indices, checks the copy and counts the entries of buckets.
  void read(const int64_t* offsets, const int64_t* columns) {
    const CompressedRows matrix("transpose", offsets, columns, count_, columns_);
    column_.resize(static_cast<size_t>(count_));
    ends_.reserve(static_cast<size_t>(rows_));
    int64_t at = 0;
    matrix.each_range(0, rows_, [&](int64_t, int64_t begin, int64_t end) {
      if (begin != at) at = count_ + 1;
      for (; at < end; ++at) {
        const int64_t c = columns[at];
        if (c < 0 || c >= columns_) matrix.fail_column(c);
        column_[static_cast<size_t>(at)] = static_cast<uint32_t>(c);
        ++starts_[static_cast<size_t>(c >> shift_) + 1];
      }
      ends_.push_back(end);
    });
    check<ErrorKind::Runtime>(at == count_, OpName("transpose"), "expected offsets from 0 to ",
                              count_, ", got ", offsets[0], " to ",
                              ends_.empty() ? 0 : ends_.back());
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
  }

  int64_t rows_, columns_, count_;
  int shift_ = 0;                 // a bucket has 2^shift_ columns
  std::vector<uint32_t> column_;  // of each entry
  std::vector<int64_t> ends_;     // of rows
  std::vector<int64_t> starts_;   // of buckets, and behind the last one the number of entries
};

// Calls f(V()) for a type V of so many bytes; false if there is none.
template <class F>
bool with_bits(int64_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(ElementBits<1>()), true;
    case 2:
      return f(ElementBits<2>()), true;
    case 4:
      return f(ElementBits<4>()), true;
    case 8:
      return f(ElementBits<8>()), true;
    case 16:
      return f(ElementBits<16>()), true;
    default:
      return false;
  }
}

std::tuple<Tensor, Tensor, Tensor> csr_transposed_cpu(const Tensor& values, const Tensor& crow,
                                                      const Tensor& col, int64_t columns) {
  const Tensor from = aten::contiguous(values);
  const int64_t count = col.numel();
  const Transposition matrix(aten::contiguous(crow), aten::contiguous(col), columns);
  const Tensor ccol = empty_cpu({columns + 1}, ScalarType::Int64);
  const Tensor row = empty_cpu({count}, ScalarType::Int64);
  const Tensor turned = empty_cpu(from.sizes(), from.dtype());
  const ByColumns to{ccol.data_as<int64_t>(), row.data_as<int64_t>()};
  const int64_t bytes = count > 0 ? from.numel() / count * from.element_size() : 1;
  const bool moved = with_bits(bytes, [&]<class V>(V) {
    matrix.write(static_cast<const V*>(from.data()), to, static_cast<V*>(turned.data()));
  });
  if (moved) return {ccol, row, turned};
  std::vector<int64_t> numbers(static_cast<size_t>(count)), order(numbers.size());
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  matrix.write(numbers.data(), to, order.data());
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(static_cast<char*>(turned.data()) + i * bytes,
                static_cast<const char*>(from.data()) + order[i] * bytes,
                static_cast<size_t>(bytes));
  return {ccol, row, turned};
}

const auto registered = register_kernels<aten::ops::_csr_transposed, DeviceType::CPU>(
    []<class T>() { return &csr_transposed_cpu; }, "csr_transposed_cpu");

}  // namespace
}  // namespace treadle::cpu
