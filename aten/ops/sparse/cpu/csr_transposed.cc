// The entries of a compressed sparse matrix by columns.
//
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <numeric>
#include <utility>

#include "aten/backend/cpu/element_bits.h"
#include "aten/ops/_csr_transposed.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/sparse/cpu/compressed_rows.h"

namespace treadle::cpu {
namespace {

class Transposition {
 public:
  Transposition(const Tensor& crow, const Tensor& col, int64_t columns)
      : matrix_("transpose", crow, col, columns),
        rows_(crow.numel() - 1),
        columns_(columns),
        count_(col.numel()),
        column_(col.data_as<int64_t>()) {}

  // Where columns begin, twice; behind them in `to` the number of entries.
  template <class Number>
  std::vector<Number> starts(int64_t* to) const {
    std::vector<Number> next(static_cast<size_t>(columns_), 0);
    const int64_t columns = columns_;
    for (int64_t i = 0, count = count_; i < count; ++i) ++next[inside(column_[i], columns)];
    Number sum = 0;
    for (int64_t c = 0; c < columns; ++c) {
      to[c] = static_cast<int64_t>(sum);
      sum += std::exchange(next[c], sum);
    }
    to[columns] = count_;
    return next;
  }

  // Writes the row and the value of each entry; `from` are the values by rows, `next` is where
  // columns begin.
  template <class Number, class V>
  void write(std::vector<Number> next, const V* from, int64_t* rows, V* values) const {
    if constexpr (sizeof(V) <= 4) {
      if (rows_ <= int64_t{UINT32_MAX} && is_scattered()) {
        // A store to a place that is in no near cache takes time, so each entry has one of them.
        struct Both {
          uint32_t row;
          V value;
        };
        static_assert(sizeof(Both) == sizeof(int64_t));
        const Tensor scratch = empty_cpu({count_}, ScalarType::Int64);
        auto* const both = static_cast<Both*>(scratch.data());
        each_entry(next.data(), [=](int64_t r, int64_t i, int64_t at) {
          both[at] = {static_cast<uint32_t>(r), from[i]};
        });
        for (int64_t i = 0, count = count_; i < count; ++i) {
          rows[i] = both[i].row;
          values[i] = both[i].value;
        }
        return;
      }
    }
    each_entry(next.data(), [=](int64_t r, int64_t i, int64_t at) {
      rows[at] = r;
      values[at] = from[i];
    });
  }

 private:
  // Calls f(row, entry, its place) for each entry. Another thread may have written the indices
  // since the columns were counted, so they are checked once more.
  template <class Number, class F>
  void each_entry(Number* next, F&& f) const {
    // Copies, since what f writes could be the members for all that the compiler knows.
    const int64_t count = count_, columns = columns_;
    const int64_t* const column = column_;
    int64_t done = 0;
    matrix_.each_range(0, rows_, [&](int64_t r, int64_t begin, int64_t end) {
      require_all(begin == done);
      for (int64_t i = begin; i < end; ++i) {
        const auto at = static_cast<int64_t>(next[inside(column[i], columns)]++);
        require_all(at < count);
        f(r, i, at);
      }
      done = end;
    });
    require_all(done == count_);
  }

  // Whether entries that lie side by side have columns far apart, as far as a sample shows.
  bool is_scattered() const {
    constexpr int64_t kSample = 64, kApart = 16;
    constexpr uint64_t kFar = 1024;
    if (count_ < kSample * kApart) return false;
    int64_t far = 0;
    for (int64_t k = 0; k < kSample; ++k) {
      const int64_t i = (count_ - kApart) / kSample * k;
      const auto here = static_cast<uint64_t>(column_[i]);
      far += static_cast<uint64_t>(column_[i + kApart]) - here + kFar > 2 * kFar;
    }
    return 2 * far > kSample;
  }

  int64_t inside(int64_t column, int64_t columns) const {
    if (static_cast<uint64_t>(column) >= static_cast<uint64_t>(columns)) [[unlikely]]
      matrix_.fail_column(column);
    return column;
  }
  void require_all(bool all) const {
    check<ErrorKind::Runtime>(all, OpName("transpose"), "expected offsets of rows from 0 to ",
                              count_, " that nobody writes meanwhile");
  }

  const CompressedRows matrix_;
  const int64_t rows_, columns_, count_;
  const int64_t* const column_;
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
  const Tensor offsets = aten::contiguous(crow), column = aten::contiguous(col);
  const int64_t count = col.numel();
  const Transposition matrix(offsets, column, columns);
  const Tensor ccol = empty_cpu({columns + 1}, ScalarType::Int64);
  const Tensor row = empty_cpu({count}, ScalarType::Int64);
  const Tensor turned = empty_cpu(from.sizes(), from.dtype());
  int64_t* const rows = row.data_as<int64_t>();
  const int64_t bytes = count > 0 ? from.numel() / count * from.element_size() : 1;
  const auto* const source = static_cast<const char*>(from.data());
  auto* const target = static_cast<char*>(turned.data());
  // Numbers of 32 bits take half of a cache.
  const auto transposed = [&]<class Number>(Number) {
    const std::vector<Number> starts = matrix.starts<Number>(ccol.data_as<int64_t>());
    const bool moved = with_bits(bytes, [&]<class V>(V) {
      matrix.write(starts, reinterpret_cast<const V*>(source), rows, reinterpret_cast<V*>(target));
    });
    if (moved) return;
    std::vector<int64_t> numbers(static_cast<size_t>(count)), order(numbers.size());
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
    matrix.write(starts, numbers.data(), rows, order.data());
    const auto size = static_cast<size_t>(bytes);
    for (size_t i = 0; i < order.size(); ++i)
      std::memcpy(target + i * size, source + static_cast<size_t>(order[i]) * size, size);
  };
  if (count <= int64_t{UINT32_MAX})
    transposed(uint32_t());
  else
    transposed(uint64_t());
  return {ccol, row, turned};
}

const auto registered = register_kernels<aten::ops::_csr_transposed, DeviceType::CPU>(
    []<class T>() { return &csr_transposed_cpu; }, "csr_transposed_cpu");

}  // namespace
}  // namespace treadle::cpu
