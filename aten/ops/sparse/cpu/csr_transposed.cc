// The entries of a compressed sparse matrix by columns.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "aten/backend/cpu/element_bits.h"
#include "aten/ops/_csr_transposed.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/sparse/cpu/compressed_rows.h"
#include "aten/ops/sparse/cpu/entry_rows.h"

namespace treadle::cpu {
namespace {

// Values of up to 32 bits have vector code.
template <class V>
inline constexpr bool is_packed = sizeof(V) <= 4;
template <size_t N>
using Bits = std::conditional_t<N == 1, uint8_t, std::conditional_t<N == 2, uint16_t, uint32_t>>;

// The entries are split into pieces, one for each thread. A piece has places of its own in each
// column, behind those of the pieces before. So the result does not depend on their number.
class Transposition {
 public:
  Transposition(const Tensor& crow, const Tensor& col, int64_t columns)
      : matrix_("transpose", crow, col, columns),
        offsets_(crow.data_as<int64_t>()),
        rows_(crow.numel() - 1),
        columns_(columns),
        count_(col.numel()),
        column_(col.data_as<int64_t>()),
        pieces_(std::clamp<int64_t>(count_ / std::max(kLeast, 2 * columns), 1, num_threads())) {
    matrix_.require_all(rows_);
  }

  // Where columns begin; behind them in `to` the number of entries. Returns where those of each
  // piece begin.
  template <class Number>
  std::vector<Number> starts(int64_t* to) const {
    std::vector<Number> next(static_cast<size_t>(pieces_ * columns_), 0);
    each_piece([&](int64_t p, int64_t first, int64_t last) {
      const int64_t* const column = column_;
      const int64_t columns = columns_;
      Number* const counts = next.data() + p * columns;
      for (int64_t i = first; i < last; ++i) ++counts[inside(column[i], columns)];
    });
    Number sum = 0;
    for (int64_t c = 0; c < columns_; ++c) {
      to[c] = static_cast<int64_t>(sum);
      for (int64_t p = 0; p < pieces_; ++p) {
        Number& of_piece = next[static_cast<size_t>(p * columns_ + c)];
        sum += std::exchange(of_piece, sum);
      }
    }
    to[columns_] = count_;
    return next;
  }

  // Writes the row and the value of each entry; `from` are the values by rows, `next` is where
  // columns begin.
  template <class Number, class V>
  void write(std::vector<Number>& next, const V* from, int64_t* rows, V* values) const {
    const auto each = [&](auto&& f) {
      each_piece([&](int64_t p, int64_t first, int64_t last) {
        simd::EntryRows entries(offsets_, rows_, count_, first);
        f(next.data() + p * columns_, entries, first, last);
      });
    };
    if constexpr (is_packed<V>) {
      if (rows_ <= int64_t{UINT32_MAX}) {
        auto* const words = reinterpret_cast<uint64_t*>(rows);
        each([&](Number* places, simd::EntryRows& entries, int64_t first, int64_t last) {
          move_packed(places, entries, first, last, from, words);
        });
        using B = Bits<sizeof(V)>;
        each_piece([&](int64_t, int64_t first, int64_t last) {
          simd::packed_entry_kernels<B>().unpack(words + first, last - first,
                                                 reinterpret_cast<B*>(values) + first);
        });
        return;
      }
    }
    each([&](Number* places, simd::EntryRows& entries, int64_t first, int64_t last) {
      move(places, entries, first, last, from, rows, values);
    });
  }

 private:
  static constexpr int64_t kLeast = int64_t{1} << 15;  // entries for which a thread is woken
  static constexpr int64_t kBlock = 1024;              // entries that stay in the nearest cache

  template <class F>
  void each_piece(F&& f) const {
    parallel_chunks(pieces_,
                    [&](int64_t p) { f(p, count_ * p / pieces_, count_ * (p + 1) / pieces_); });
  }

  // Entries are packed in the result's rows. A store to a place that is in no near cache takes
  // time, so each entry has one of them.
  template <class Number, class V>
  void move_packed(Number* next, simd::EntryRows& entries, int64_t first, int64_t last,
                   const V* from, uint64_t* to) const {
    using B = Bits<sizeof(V)>;
    const auto kernels = simd::packed_entry_kernels<B>();
    uint64_t words[kBlock + simd::kPadding];
    for (int64_t i = first; i < last; i += kBlock) {
      const int64_t end = std::min(last, i + kBlock);
      const bool good = kernels.pack(entries, i, end, reinterpret_cast<const B*>(from), words);
      matrix_.require_all(rows_, good);
      each_place(next, i, end, [=](int64_t k, int64_t at) { to[at] = words[k - i]; });
    }
  }
  template <class Number, class V>
  void move(Number* next, simd::EntryRows& entries, int64_t first, int64_t last, const V* from,
            int64_t* rows, V* values) const {
    for (int64_t i = first; i < last;) {
      matrix_.require_all(rows_, entries.next(i));
      const int64_t row = entries.row, end = std::min(last, entries.end);
      each_place(next, i, end, [=](int64_t k, int64_t at) {
        rows[at] = row;
        values[at] = from[k];
      });
      i = end;
    }
  }
  // Calls f(entry, its place) for each entry. Another thread may have written the indices since the
  // columns were counted, so they are checked once more.
  template <class Number, class F>
  void each_place(Number* next, int64_t first, int64_t last, F&& f) const {
    // Copies, since what f writes could be the members for all that the compiler knows.
    const int64_t count = count_, columns = columns_;
    const int64_t* const column = column_;
    for (int64_t i = first; i < last; ++i) {
      const auto at = static_cast<int64_t>(next[inside(column[i], columns)]++);
      if (at >= count) [[unlikely]]
        matrix_.fail_meanwhile();
      f(i, at);
    }
  }

  int64_t inside(int64_t column, int64_t columns) const {
    if (static_cast<uint64_t>(column) >= static_cast<uint64_t>(columns)) [[unlikely]]
      matrix_.fail_column(column);
    return column;
  }
  const CompressedRows matrix_;
  const int64_t* const offsets_;
  const int64_t rows_, columns_, count_;
  const int64_t* const column_;
  const int64_t pieces_;
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
    std::vector<Number> starts = matrix.starts<Number>(ccol.data_as<int64_t>());
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
