// Index plans: the memory offsets of the elements that an operator with index tensors reads or
// writes.
//
//   element (o, i, q, r) of the indexed part  =  data[outer[o] + index[i] + inner[q] + r],  r < run
//
// `outer` are the dimensions before the indexed ones, `index` the entries of the index tensors,
// `inner` x `run` the dimensions after. The last of these are contiguous. Offsets are in elements.
// Bounds are checked while a plan is made, so using the plan needs no checks, and a concurrent
// change of an index tensor has no effect. DirectIndex is an exception.
//
// Other threads may write the memory of an index at any time. So a kernel uses no entry that was
// checked in another read. It has its own offsets, or it checks an entry when it uses it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/backend/cpu/non_temporal_stores.h"
#include "aten/backend/cpu/read_once.h"
#include "aten/ops/indexing/cpu/deterministic_scatter.h"
#include "core/tensor/tensor.h"

namespace treadle::cpu {

inline constexpr int64_t kAhead = 16;  // entries between the prefetch of an element and its use

// Whether the elements of `count` entries, somewhere in `bytes`, fit into a core's cache, so that
// prefetching them would only cost time.
inline bool stays_near(int64_t count, uint64_t bytes) {
  constexpr uint64_t kCache = uint64_t{1} << 19, kLine = 64;
  return bytes <= kCache || static_cast<uint64_t>(count) <= kCache / kLine;
}

// Offsets without initial values, because there may be as many as elements.
class Offsets {
 public:
  Offsets() = default;
  // Memory of a tensor, because its allocator caches large blocks for the next one.
  explicit Offsets(int64_t count)
      : memory_(empty_cpu({count}, ScalarType::Int64)),
        values_(memory_.data_as<int64_t>()),
        count_(count) {}
  int64_t size() const { return count_; }
  const int64_t* data() const { return values_; }
  int64_t* data() { return values_; }
  int64_t operator[](int64_t i) const { return values_[i]; }

 private:
  Tensor memory_;
  int64_t* values_ = nullptr;
  int64_t count_ = 0;
};

// One index for the elements of a one-dimensional tensor, the most common case. Entries are checked
// when they are used, so no offsets are stored. Before a write to a tensor of the caller, all of
// them are checked as well.
struct DirectIndex {
  const int64_t* values = nullptr;
  int64_t count = 0;
  uint64_t size = 0, stride = 0, wrap = 0;  // wrap: the size where negative entries are allowed
  std::string_view op;
  int64_t dim = -1;  // for the message; -1: the operator has only one

  // Whether every entry is in range, and whether those of [begin, end) are.
  bool is_inside() const;
  bool is_inside(int64_t begin, int64_t end) const;

  // f(at), where at(e) is the offset of an entry's element, or raises IndexError for an entry out
  // of range. It holds copies, because the compiler must assume that a loop's writes could change
  // this object.
  template <class F>
  void with_offsets(F&& f) const {
    const auto place = [this, values = values, size = size, wrap = wrap](int64_t e) {
      const uint64_t given = static_cast<uint64_t>(read_once(values + e));
      uint64_t place = given;
      if (place >= size) [[unlikely]] {
        place += wrap;
        if (place >= size) throw out_of_bounds(static_cast<int64_t>(given));
      }
      return place;
    };
    if (stride == 1) return f([=](int64_t e) { return static_cast<int64_t>(place(e)); });
    f([=, stride = stride](int64_t e) { return static_cast<int64_t>(place(e) * stride); });
  }

  // The offset of an entry's element if the entry is in range and not negative. It is an address to
  // prefetch, not to use.
  template <class Element>
  const void* unchecked(const Element* data, int64_t e) const {
    const uint64_t offset = static_cast<uint64_t>(values[e]) * stride * sizeof(Element);
    return reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(data) + offset);
  }

  // The error of the first entry out of range, or of the last entry if the index has changed since.
  [[gnu::cold]] Error out_of_bounds() const;
  [[gnu::cold]] Error out_of_bounds(int64_t value) const;
};

struct IndexPlan {
  DirectIndex direct;   // with values: there is nothing else in the plan
  Tensor index_values;  // keeps them alive
  std::vector<int64_t> outer, inner;
  Offsets index;
  int64_t run = 1;

  int64_t slice() const { return static_cast<int64_t>(inner.size()) * run; }
  int64_t slices() const { return static_cast<int64_t>(outer.size()) * index.size(); }
};

enum class NegativeIndex : bool { Refused, FromTheEnd };
enum class PlanFor : bool { Reading, Writing };

// Advanced indexing with integer tensors; see shape::IndexGeometry for the order of dimensions.
// `out` is the tensor that the operator is about to write: self, or a new tensor.
IndexPlan advanced_plan(std::string_view op, const Tensor& self, TensorList indices, PlanFor use,
                        const Tensor& out);
// One index for a one-dimensional tensor, unless the index needs another form first, another order,
// or may change while `out` is written. Its entries are not checked.
std::optional<DirectIndex> direct_index(std::string_view op, const Tensor& self,
                                        const Tensor& index, NegativeIndex negative, int64_t dim,
                                        PlanFor use, const Tensor& out);
IndexPlan plan_of(const DirectIndex& direct, const Tensor& index);
// By offsets, one for each entry.
IndexPlan dim_offsets_plan(std::string_view op, const Tensor& self, int64_t dim,
                           const Tensor& index, NegativeIndex negative);

// One index tensor, of any shape, for `dim` of self. `out` is the tensor that the operator is about
// to write. It may be a tensor of the caller, which must not change if an entry is out of range.
// Inlined, and checked before any object is made, because each frame and each destructor makes an
// error slower.
[[gnu::always_inline]] inline IndexPlan dim_plan(std::string_view op, const Tensor& self,
                                                 int64_t dim, const Tensor& index,
                                                 NegativeIndex negative, PlanFor use,
                                                 const Tensor& out) {
  if (const auto direct = direct_index(op, self, index, negative, -1, use, out)) {
    if (!direct->is_inside()) throw direct->out_of_bounds();
    return plan_of(*direct, index);
  }
  return dim_offsets_plan(op, self, dim, index, negative);
}

// The entries of an index in [0, size). Each is read once and then checked; IndexError if it is out
// of range.
class Entries {
 public:
  Entries(const int64_t* values, int64_t size, std::string_view op)
      : values_(values), size_(static_cast<uint64_t>(size)), op_(op) {}
  int64_t operator[](int64_t i) const {
    const int64_t value = read_once(values_ + i);
    if (static_cast<uint64_t>(value) >= size_) [[unlikely]]
      throw out_of_bounds(op_, value, static_cast<int64_t>(size_));
    return value;
  }
  const int64_t* data() const { return values_; }
  // The offset of an entry's element if the entry is in range. It is an address to prefetch, not to
  // use.
  template <class Element>
  const void* unchecked(const Element* data, int64_t i, int64_t step) const {
    const uint64_t offset =
        static_cast<uint64_t>(values_[i]) * static_cast<uint64_t>(step) * sizeof(Element);
    return reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(data) + offset);
  }

 private:
  [[gnu::cold, gnu::noinline]] static Error out_of_bounds(std::string_view op, int64_t value,
                                                          int64_t size);
  const int64_t* values_;
  uint64_t size_;
  std::string_view op_;
};

// An index as contiguous int64 values, all of which were in range when it was made.
class CheckedIndex {
 public:
  CheckedIndex(std::string_view op, Tensor values, int64_t size)
      : values_(std::move(values)), size_(size), op_(op) {}
  IntList sizes() const { return values_.sizes(); }
  int64_t numel() const { return values_.numel(); }
  Entries entries() const { return {values_.data_as<int64_t>(), size_, op_}; }

 private:
  Tensor values_;
  int64_t size_;
  std::string_view op_;
};

// IndexError if an entry of `index` is not in [0, size). It never shares memory with `written`,
// which the caller is about to write.
CheckedIndex checked_index(std::string_view op, const Tensor& index, int64_t size,
                           const Tensor& written);
// A copy of the entries, for kernels that read them more than once. IndexError as above.
Offsets own_entries(std::string_view op, const Tensor& index, int64_t size);
// `t` as a contiguous tensor that shares no memory with `written`.
Tensor apart_from(const Tensor& t, const Tensor& written);

template <class Element>
void read_direct(const DirectIndex& index, const Element* data, Element* out) {
  const bool far = !stays_near(index.count, index.size * sizeof(Element));
  parallel_for(index.count, kGrain, [=, &index](int64_t i, int64_t end) {
    index.with_offsets([=, &index](auto at) mutable {
      if (far) {
        for (; i < end - kAhead; ++i) {
          __builtin_prefetch(index.unchecked(data, i + kAhead));
          out[i] = data[at(i)];
        }
      }
#pragma GCC unroll 4
      for (; i < end; ++i) out[i] = data[at(i)];
    });
  });
}

// to[e] = from[at[e]]. All arguments are passed by value, because the compiler must assume that a
// write could change memory. `far`: the elements are scattered, which makes memory slow to answer,
// so they are prefetched.
template <class Element>
void read_row(const Element* from, const int64_t* at, int64_t entries, bool far, Element* to) {
  int64_t e = 0;
  for (; far && e < entries - kAhead; ++e) {
    __builtin_prefetch(from + at[e + kAhead]);
    to[e] = from[at[e]];
  }
#pragma GCC unroll 8
  for (; e < entries; ++e) to[e] = from[at[e]];
}

// Copies at least 16 bytes without a call.
inline void copy_short(const void* from, int64_t bytes, void* to) {
  constexpr int64_t kStep = 16;
  const auto copy_at = [&](int64_t i) {
    std::memcpy(static_cast<char*>(to) + i, static_cast<const char*>(from) + i, kStep);
  };
  for (int64_t i = 0; i < bytes - kStep; i += kStep) copy_at(i);
  copy_at(bytes - kStep);  // may overlap the one before
}

// Copies the elements of the plan to `out`, in order.
template <class Element>
void read_plan(const IndexPlan& plan, const Element* data, Element* out) {
  if (plan.direct.values) return read_direct(plan.direct, data, out);
  const int64_t entries = plan.index.size();
  const int64_t slice = plan.slice();
  const NonTemporalStores writes(plan.slices() * slice * int64_t{sizeof(Element)});
  // Rows lie anywhere, so the processor does not foresee them. A long row it does, once begun.
  const int64_t run_bytes = plan.run * int64_t{sizeof(Element)};
  const int64_t told_bytes = std::min<int64_t>(run_bytes, 512);
  const int64_t rows_ahead = std::clamp<int64_t>(4096 / std::max<int64_t>(1, run_bytes), 1, kAhead);
  const bool is_short = !writes.on() && run_bytes >= 16 && run_bytes <= 256;
  parallel_for(plan.slices(), grain_for(slice), [&](int64_t begin, int64_t end) {
    int64_t o = begin / entries;
    int64_t e = begin % entries;
    for (int64_t i = begin; i < end; ++o, e = 0) {
      const int64_t stop = std::min(end, i + entries - e);
      if (slice == 1) {
        read_row(data + plan.outer[o] + plan.inner[0], plan.index.data() + e, stop - i,
                 plan.outer.size() == 1, out + i);
        i = stop;
        continue;
      }
      for (; i < stop; ++i) {
        if (i + rows_ahead < stop) {
          const char* const ahead = reinterpret_cast<const char*>(
              data + plan.outer[o] + plan.index[e + rows_ahead] + plan.inner[0]);
          for (int64_t b = 0; b < told_bytes; b += 64) __builtin_prefetch(ahead + b);
        }
        const Element* from = data + plan.outer[o] + plan.index[e++];
        Element* to = out + i * slice;
        for (const int64_t offset : plan.inner) {
          if (is_short)
            copy_short(from + offset, run_bytes, to);
          else if (plan.run >= 16)
            writes.copy(to, from + offset, run_bytes);
          else
            for (int64_t r = 0; r < plan.run; ++r) to[r] = from[offset + r];
          to += plan.run;
        }
      }
    }
    writes.finish();
  });
}

// The write() of write_plan for copies. Runs of elements have a faster path for it.
struct Assign {
  template <class T>
  void operator()(T& target, const T& value) const {
    target = value;
  }
};

template <class T, class S, class Write>
void write_run(T* target, const S* source, int64_t count, RowAhead ahead, Write write) {
  if constexpr (std::is_same_v<Write, Assign>) {
    if (count >= 16) {
      NonTemporalStores::copy_row(target, source, count * int64_t{sizeof(T)}, ahead);
      return;
    }
  }
  for (int64_t r = 0; r < count; ++r) write(target[r], source[r]);
}

// write(to[at[e]], source[e * step]) for each entry; otherwise as read_row.
template <class T, class S, class Write>
void write_row(T* to, const int64_t* at, int64_t entries, bool far, const S* source, int64_t step,
               Write write) {
  int64_t e = 0;
  for (; far && e < entries - kAhead; ++e) {
    __builtin_prefetch(to + at[e + kAhead], 1);
    write(to[at[e]], source[e * step]);
  }
#pragma GCC unroll 4
  for (; e < entries; ++e) write(to[at[e]], source[e * step]);
}

// write(data element, source element) for the elements of the plan. The entries of `index` run in
// order, so that writes to one element give the same result at any number of threads. Only columns
// and outer dimensions run in parallel, or runs of single elements. `source` has the plan's
// elements in order, or one element for all if not `many`. `data` has `span` contiguous elements.
template <class T, class S, class Write>
void write_plan(const IndexPlan& plan, T* data, int64_t span, const S* source, bool many,
                Write write) {
  if (plan.direct.values) {
    const DirectIndex& index = plan.direct;
    const bool far = !stays_near(index.count, index.size * sizeof(T));
    index.with_offsets([=, index = index, step = int64_t{many}](auto at) {
      int64_t e = 0;
      if (far) {
        for (; e < index.count - kAhead; ++e) {
          __builtin_prefetch(index.unchecked(data, e + kAhead), 1);
          write(data[at(e)], source[e * step]);
        }
      }
#pragma GCC unroll 4
      for (; e < index.count; ++e) write(data[at(e)], source[e * step]);
    });
    return;
  }
  const int64_t entries = plan.index.size();
  const int64_t slice = plan.slice();
  const int64_t rows = static_cast<int64_t>(plan.inner.size());
  if (entries == 0 || slice == 0) return;
  if (slice == 1) {
    const int64_t* const at = plan.index.data();
    const int64_t step = many;
    const auto outer = static_cast<int64_t>(plan.outer.size());
    if (outer > 1 || !worth_sorting(entries, span)) {
      parallel_for(outer, grain_for(entries), [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) {
          write_row(data + plan.outer[o] + plan.inner[0], at, entries, outer == 1,
                    source + o * entries * step, step, write);
        }
      });
      return;
    }
    T* const target = data + plan.outer[0] + plan.inner[0];
    deterministic_scatter(
        entries, span, [=](int64_t e) { return at[e]; },
        [=](int64_t e) { write(target[at[e]], source[e * step]); });
    return;
  }
  // A column is one row of `inner`, or a part of the run if there is only one row. It is as wide as
  // possible while every thread has one, because memory is slow with narrow columns.
  const int64_t width =
      rows > 1 ? 1 : std::max<int64_t>(16, (plan.run + num_threads() - 1) / num_threads());
  const int64_t columns = rows > 1 ? rows : (plan.run + width - 1) / width;
  const int64_t work = entries * (rows > 1 ? plan.run : width);
  parallel_for(static_cast<int64_t>(plan.outer.size()) * columns, grain_for(work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t o = i / columns;
                   const int64_t column = i % columns;
                   const int64_t q = rows > 1 ? column : 0;
                   const int64_t first = rows > 1 ? 0 : column * width;
                   const int64_t last = rows > 1 ? plan.run : std::min(plan.run, first + width);
                   T* const target = data + plan.outer[o] + plan.inner[q];
                   const S* from = many ? source + o * entries * slice + q * plan.run : source;
                   for (int64_t e = 0; e < entries; ++e) {
                     T* const to = target + plan.index[e];
                     if (e + kAhead < entries)
                       __builtin_prefetch(target + plan.index[e + kAhead] + first, 1);
                     if (many) {
                       RowAhead ahead;
                       if (e + 2 < entries)
                         ahead = {(plan.index[e + 2] - plan.index[e]) * int64_t{sizeof(T)},
                                  2 * slice * int64_t{sizeof(S)}};
                       write_run(to + first, from + first, last - first, ahead, write);
                       from += slice;
                     } else {
                       for (int64_t r = first; r < last; ++r) write(to[r], *from);
                     }
                   }
                 }
               });
}

}  // namespace treadle::cpu
