// Conversions of the indices of sparse tensors: entries in order and without repetition, offsets of
// rows.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/_coo_groups.h"
#include "aten/ops/_row_offsets.h"
#include "aten/ops/contiguous.h"
#include "core/base/checked.h"

namespace treadle::cpu {
namespace {

// ---- entries in order ----

// The key of an entry and its number, side by side in one word where both fit.
struct Packed {
  uint64_t word;
  uint64_t key(int number_bits) const { return word >> number_bits; }
  int64_t number(int number_bits) const {
    return static_cast<int64_t>(word & ((uint64_t{1} << number_bits) - 1));
  }
};
struct Apart {
  uint64_t word;
  int64_t at;
  uint64_t key(int) const { return word; }
  int64_t number(int) const { return at; }
};

// Sorts entries by their keys, which have so many bits. Equal keys keep their order. It is a radix
// sort by 11 bits at a time; digits that all keys share are left out.
template <class Entry>
void sort_by_key(std::vector<Entry>& entries, int key_bits, int number_bits) {
  const auto key = [=](const Entry& e) { return e.key(number_bits); };
  if (entries.size() < 256) {
    return std::stable_sort(entries.begin(), entries.end(),
                            [&](const Entry& a, const Entry& b) { return key(a) < key(b); });
  }
  constexpr int kBits = 11;
  constexpr size_t kDigits = size_t{1} << kBits;
  std::vector<Entry> moved(entries.size());
  for (int shift = 0; shift < key_bits; shift += kBits) {
    std::vector<size_t> starts(kDigits, 0);
    for (const Entry& e : entries) ++starts[key(e) >> shift & (kDigits - 1)];
    if (std::find(starts.begin(), starts.end(), entries.size()) != starts.end()) continue;
    std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), size_t{0});
    for (const Entry& e : entries) moved[starts[key(e) >> shift & (kDigits - 1)]++] = e;
    entries.swap(moved);
  }
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

// The key of each entry: its place, with the sparse dimensions laid out one after another.
std::vector<uint64_t> keys_of(const Tensor& indices, IntList size) {
  const int64_t dims = indices.size(0), count = indices.size(1);
  std::vector<uint64_t> keys(static_cast<size_t>(count), 0);
  for (int64_t d = 0; d < dims; ++d) {
    const auto n = static_cast<uint64_t>(size[d]);
    const int64_t* const row = indices.data_as<int64_t>() + d * count;
    for (int64_t i = 0; i < count; ++i) {
      const auto index = static_cast<uint64_t>(row[i]);
      check<ErrorKind::Runtime>(index < n, OpName("coalesce"), "expected indices of dimension ", d,
                                " from 0 to ", size[d] - 1, ", got ", static_cast<int64_t>(index));
      keys[i] = keys[i] * n + index;
    }
  }
  return keys;
}

// The different keys in order. Writes which of them each entry has.
template <class Entry>
std::vector<uint64_t> different_keys(std::vector<Entry>& entries, int key_bits, int number_bits,
                                     int64_t* group_of) {
  sort_by_key(entries, key_bits, number_bits);
  std::vector<uint64_t> different;
  different.reserve(entries.size());
  for (const Entry& e : entries) {
    const uint64_t key = e.key(number_bits);
    if (different.empty() || key != different.back()) different.push_back(key);
    group_of[e.number(number_bits)] = static_cast<int64_t>(different.size()) - 1;
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
  const auto grouped = [&]<class Entry>(auto&& entry) {
    std::vector<Entry> entries(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) entries[i] = entry(keys[i], i);
    return different_keys(entries, key_bits, number_bits, group_of);
  };
  keys = key_bits + number_bits <= 64
             ? grouped.template operator()<Packed>(
                   [=](uint64_t key, size_t i) { return Packed{key << number_bits | i}; })
             : grouped.template operator()<Apart>([](uint64_t key, size_t i) {
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

template <class T>
Tensor row_offsets_cpu(const Tensor& rows, int64_t count) {
  const Tensor from = aten::contiguous(rows);
  const Tensor offsets = empty_cpu({count + 1}, ScalarType::Int64);
  int64_t* const to = offsets.data_as<int64_t>();
  const int64_t* const row = from.data_as<int64_t>();
  const int64_t entries = from.numel();
  int64_t next = 0;  // the first row whose offset is not written
  for (int64_t i = 0; i < entries; ++i) {
    const int64_t r = row[i];
    check<ErrorKind::Runtime>(r >= next - 1 && r >= 0 && r < count, OpName("to_sparse_csr"),
                              "expected rows in order from 0 to ", count - 1, ", got ", r,
                              " at entry ", i);
    while (next <= r) to[next++] = i;
  }
  while (next <= count) to[next++] = entries;
  return offsets;
}

const auto groups_registered = register_kernels<aten::ops::_coo_groups, DeviceType::CPU>(
    []<class T>() { return &coo_groups_cpu<T>; }, "coo_groups_cpu");
const auto offsets_registered = register_kernels<aten::ops::_row_offsets, DeviceType::CPU>(
    []<class T>() { return &row_offsets_cpu<T>; }, "row_offsets_cpu");

}  // namespace
}  // namespace treadle::cpu
