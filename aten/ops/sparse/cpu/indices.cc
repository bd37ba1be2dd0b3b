// Conversions of the indices of sparse tensors: entries in order and without repetition, offsets of
// rows.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <vector>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/_coo_groups.h"
#include "aten/ops/_csr_coordinates.h"
#include "aten/ops/_row_offsets.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/sparse/cpu/compressed_rows.h"
#include "aten/ops/sparse/cpu/entry_rows.h"
#include "core/base/checked.h"

namespace treadle::cpu {
namespace {

// ---- entries in order ----

// The key of an entry and its number, side by side in one word where both fit. A key begins at a
// bit that is given, the first or the one behind the bits of the numbers.
struct Packed {
  uint64_t word;
  uint64_t key(int first_bit) const { return word >> first_bit; }
  int64_t number(int first_bit) const {
    return static_cast<int64_t>(word & ((uint64_t{1} << first_bit) - 1));
  }
};
struct Apart {
  uint64_t word;
  int64_t at;
  uint64_t key(int first_bit) const { return word >> first_bit; }
  int64_t number(int) const { return at; }
};

// Entries without a value at first.
template <class Entry>
struct EntryList {
  explicit EntryList(size_t n) : count(n), all(std::make_unique_for_overwrite<Entry[]>(n)) {}
  Entry* begin() const { return all.get(); }
  Entry* end() const { return all.get() + count; }
  size_t count;
  std::unique_ptr<Entry[]> all;
};

// A radix sort by `bits` bits at a time, which leaves out digits that all keys share.
template <class Number, class Entry>
void sort_by_digits(EntryList<Entry>& entries, int key_bits, int bits, int first_bit) {
  const size_t digits = size_t{1} << bits;
  const int passes = (key_bits + bits - 1) / bits;
  std::vector<Number> counts(static_cast<size_t>(passes) * digits, 0);
  for (const Entry& e : entries) {
    uint64_t key = e.key(first_bit);
    for (size_t p = 0; p < counts.size(); p += digits, key >>= bits)
      ++counts[p + (key & (digits - 1))];
  }
  EntryList<Entry> moved(entries.count);
  for (int p = 0; p < passes; ++p) {
    Number* const starts = counts.data() + static_cast<size_t>(p) * digits;
    if (std::find(starts, starts + digits, entries.count) != starts + digits) continue;
    std::exclusive_scan(starts, starts + digits, starts, Number{0});
    const int shift = first_bit + p * bits;
    Entry* const to = moved.begin();
    for (const Entry& e : entries) to[starts[e.key(shift) & (digits - 1)]++] = e;
    std::swap(entries, moved);
  }
}

// Sorts entries by their keys, which have so many bits. Equal keys keep their order.
template <class Entry>
void sort_by_key(EntryList<Entry>& entries, int key_bits, int first_bit) {
  if (entries.count < 256) {
    const auto key = [=](const Entry& e) { return e.key(first_bit); };
    return std::stable_sort(entries.begin(), entries.end(),
                            [&](const Entry& a, const Entry& b) { return key(a) < key(b); });
  }
  // Digits of one length, of as few bits as do not take more passes. Few entries have short digits.
  const int most = std::clamp(static_cast<int>(std::bit_width(entries.count)) - 3, 8, 12);
  const int passes = std::max(1, (key_bits + most - 1) / most);
  const int bits = (key_bits + passes - 1) / passes;
  if (entries.count <= UINT32_MAX)
    sort_by_digits<uint32_t>(entries, key_bits, bits, first_bit);
  else
    sort_by_digits<uint64_t>(entries, key_bits, bits, first_bit);
}

// The number of places that dimensions of these sizes have.
int64_t places_of(IntList size) {
  int64_t places = 1;
  for (const int64_t n : size) {
    check<ErrorKind::Runtime>(
        !__builtin_mul_overflow(places, std::max<int64_t>(n, 1), &places), OpName("coalesce"),
        "expected sparse dimensions of fewer than 2^63 places, got sizes ", size);
  }
  return places;
}

[[noreturn]] void fail_index(const int64_t* indices, int64_t count, int64_t d, int64_t size) {
  const int64_t* const wrong =
      std::find_if(indices, indices + count, [=](int64_t i) { return i < 0 || i >= size; });
  check<ErrorKind::Runtime>(wrong == indices + count, OpName("coalesce"),
                            "expected indices of dimension ", d, " from 0 to ", size - 1, ", got ",
                            *wrong);
  fail<ErrorKind::Runtime>(OpName("coalesce"), "expected indices that nobody writes meanwhile");
}

// The key of each entry: its place, with the sparse dimensions laid out one after another.
std::vector<uint64_t> keys_of(const Tensor& indices, IntList size) {
  const int64_t dims = indices.size(0), count = indices.size(1);
  std::vector<uint64_t> keys(static_cast<size_t>(count), 0);
  for (int64_t d = 0; d < dims; ++d) {
    const auto n = static_cast<uint64_t>(size[d]);
    const int64_t* const row = indices.data_as<int64_t>() + d * count;
    bool outside = false;
    for (int64_t i = 0; i < count; ++i) {
      const auto index = static_cast<uint64_t>(row[i]);
      outside |= index >= n;
      keys[i] = keys[i] * n + index;
    }
    if (outside) fail_index(row, count, d, size[d]);
  }
  return keys;
}

// The different keys in order. Writes which of them each entry has.
template <class Entry>
std::vector<uint64_t> different_keys(EntryList<Entry>& entries, int key_bits, int first_bit,
                                     int64_t* group_of) {
  sort_by_key(entries, key_bits, first_bit);
  std::vector<uint64_t> different;
  different.reserve(entries.count);
  for (const Entry& e : entries) {
    const uint64_t key = e.key(first_bit);
    if (different.empty() || key != different.back()) different.push_back(key);
    group_of[e.number(first_bit)] = static_cast<int64_t>(different.size()) - 1;
  }
  return different;
}

template <class T>
std::tuple<Tensor, Tensor> coo_groups_cpu(const Tensor& indices, IntList size) {
  const Tensor from = aten::contiguous(indices);
  const int64_t dims = from.size(0), count = from.size(1);
  check<ErrorKind::Runtime>(static_cast<int64_t>(size.size()) == dims, OpName("coalesce"),
                            "expected ", dims, " sizes, got ", size.size());
  const auto places = static_cast<uint64_t>(places_of(size));
  std::vector<uint64_t> keys = keys_of(from, size);
  const int key_bits = std::bit_width(places - 1);
  const int number_bits = std::bit_width(static_cast<uint64_t>(count));
  const Tensor groups = empty_cpu({count}, ScalarType::Int64);
  int64_t* const group_of = groups.data_as<int64_t>();
  const auto grouped = [&]<class Entry>(int first_bit, auto&& entry) {
    EntryList<Entry> entries(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) entries.begin()[i] = entry(keys[i], i);
    return different_keys(entries, key_bits, first_bit, group_of);
  };
  if (key_bits + number_bits <= 64)
    keys = grouped.template operator()<Packed>(
        number_bits, [=](uint64_t key, size_t i) { return Packed{key << number_bits | i}; });
  else
    keys = grouped.template operator()<Apart>(0, [](uint64_t key, size_t i) {
      return Apart{key, static_cast<int64_t>(i)};
    });
  const auto left = static_cast<int64_t>(keys.size());
  const Tensor unique = empty_cpu({dims, left}, ScalarType::Int64);
  for (int64_t d = dims; d-- > 0;) {
    const auto n = static_cast<uint64_t>(std::max<int64_t>(size[d], 1));
    int64_t* const row = unique.data_as<int64_t>() + d * left;
    // Keys are in order, so that the quotient is seldom another one, and a division takes time.
    uint64_t quotient = 0;
    for (int64_t i = 0; i < left; ++i) {
      if (keys[i] - quotient * n >= n) quotient = keys[i] / n;
      row[i] = static_cast<int64_t>(keys[i] - quotient * n);
      keys[i] = quotient;
    }
  }
  return {unique, groups};
}

// ---- offsets of rows ----

constexpr int64_t kPiece = int64_t{1} << 16;  // entries for which a thread is woken

template <class T>
Tensor row_offsets_cpu(const Tensor& rows, int64_t count) {
  const Tensor from = aten::contiguous(rows);
  const Tensor offsets = empty_cpu({count + 1}, ScalarType::Int64);
  int64_t* const to = offsets.data_as<int64_t>();
  const int64_t* const row = from.data_as<int64_t>();
  const int64_t entries = from.numel();
  const auto kernels = simd::entry_row_kernels();
  parallel_for(entries, kPiece, [&](int64_t first, int64_t last) {
    const int64_t done = kernels.write_starts(row, first, last, count, to);
    if (done < last) [[unlikely]]
      fail<ErrorKind::Runtime>(OpName("to_sparse_csr"), "expected rows in order from 0 to ",
                               count - 1, ", got ", row[done], " at entry ", done);
  });
  const int64_t left = entries == 0 ? 0 : std::clamp<int64_t>(row[entries - 1] + 1, 0, count);
  std::fill(to + left, to + count + 1, entries);
  return offsets;
}

// ---- rows of entries ----

template <class T>
void csr_coordinates_cpu(const Tensor& crow, const Tensor& col, bool by_rows, const Tensor& out) {
  const Tensor offsets = aten::contiguous(crow), indices = aten::contiguous(col);
  const int64_t lines = crow.numel() - 1, count = col.numel();
  const int64_t *const offset = offsets.data_as<int64_t>(), *const index =
                                                                indices.data_as<int64_t>();
  int64_t* const line_to = out.data_as<int64_t>() + (by_rows ? 0 : count);
  int64_t* const index_to = out.data_as<int64_t>() + (by_rows ? count : 0);
  const CompressedRows matrix("to_sparse", offsets, indices, /*width=*/0);
  matrix.require_all(lines);
  const auto kernels = simd::entry_row_kernels();
  parallel_for(count, kPiece, [&](int64_t first, int64_t last) {
    simd::EntryRows rows(offset, lines, count, first);
    matrix.require_all(lines, kernels.write_rows(rows, first, last, line_to + first));
    std::copy(index + first, index + last, index_to + first);
  });
}

const auto groups_registered = register_kernels<aten::ops::_coo_groups, DeviceType::CPU>(
    []<class T>() { return &coo_groups_cpu<T>; }, "coo_groups_cpu");
const auto offsets_registered = register_kernels<aten::ops::_row_offsets, DeviceType::CPU>(
    []<class T>() { return &row_offsets_cpu<T>; }, "row_offsets_cpu");
const auto coordinates_registered = register_kernels<aten::ops::_csr_coordinates, DeviceType::CPU>(
    []<class T>() { return &csr_coordinates_cpu<T>; }, "csr_coordinates_cpu");

}  // namespace
}  // namespace treadle::cpu
