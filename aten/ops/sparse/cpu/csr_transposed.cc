// The entries of a compressed sparse matrix by columns.
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

class Transposition {
 public:
  Transposition(const Tensor& crow, const Tensor& col, int64_t columns)
      : matrix_("transpose", crow, col, columns),
        rows_(crow.numel() - 1),
        columns_(columns),
        count_(col.numel()),
        column_(col.data_as<int64_t>()) {}

  // Where columns begin, and behind the last one the number of entries.
  void starts(int64_t* to) const {
    std::fill_n(to, columns_ + 1, int64_t{0});
    const int64_t columns = columns_;
    for (int64_t i = 0, count = count_; i < count; ++i) ++to[inside(column_[i], columns) + 1];
    std::partial_sum(to, to + columns_ + 1, to);
  }

  // Writes the row and the value of each entry; `from` are the values by rows. Another thread may
  // have written the indices since the columns were counted, so that they are checked once more.
  template <class V>
  void write(const int64_t* starts, const V* from, int64_t* rows, V* values) const {
    std::vector<int64_t> next(starts, starts + columns_);
    // Copies, since writes to `rows` could change the members for all that the compiler knows.
    const int64_t count = count_, columns = columns_;
    const int64_t* const column = column_;
    int64_t done = 0;
    matrix_.each_range(0, rows_, [&](int64_t r, int64_t begin, int64_t end) {
      require_all(begin == done);
      for (int64_t i = begin; i < end; ++i) {
        // Processors do not foresee which column comes next, and its places are in no cache.
        if (i + kAhead < count) {
          const auto ahead = static_cast<uint64_t>(column[i + kAhead]);
          if (ahead < static_cast<uint64_t>(columns)) {
            __builtin_prefetch(rows + next[ahead], 1);
            __builtin_prefetch(values + next[ahead], 1);
          }
        }
        const int64_t at = next[inside(column[i], columns)]++;
        require_all(at < count);
        rows[at] = r;
        values[at] = from[i];
      }
      done = end;
    });
    require_all(done == count_);
  }

 private:
  static constexpr int64_t kAhead = 16;  // entries

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
  int64_t *const starts = ccol.data_as<int64_t>(), *const rows = row.data_as<int64_t>();
  matrix.starts(starts);
  const int64_t bytes = count > 0 ? from.numel() / count * from.element_size() : 1;
  const auto* const source = static_cast<const char*>(from.data());
  auto* const target = static_cast<char*>(turned.data());
  const bool moved = with_bits(bytes, [&]<class V>(V) {
    matrix.write(starts, reinterpret_cast<const V*>(source), rows, reinterpret_cast<V*>(target));
  });
  if (moved) return {ccol, row, turned};
  std::vector<int64_t> numbers(static_cast<size_t>(count)), order(numbers.size());
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  matrix.write(starts, numbers.data(), rows, order.data());
  const auto size = static_cast<size_t>(bytes);
  for (size_t i = 0; i < order.size(); ++i)
    std::memcpy(target + i * size, source + static_cast<size_t>(order[i]) * size, size);
  return {ccol, row, turned};
}

const auto registered = register_kernels<aten::ops::_csr_transposed, DeviceType::CPU>(
    []<class T>() { return &csr_transposed_cpu; }, "csr_transposed_cpu");

}  // namespace
}  // namespace treadle::cpu
