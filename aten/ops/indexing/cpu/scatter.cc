// scatter and related operators: out[index[i][j]][j] = src[i][j] for dim 0, and so on for other
// dimensions.
//
// Elements of `out` that appear several times in `index` are written in the order of `index`. Only
// entries along `dim` can name the same element, so the rest runs in parallel with the same result.
// With one dimension, runs of neighbouring elements run in parallel.
//
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>

#include "aten/backend/cpu/element_bits.h"
#include "aten/backend/cpu/long_sums.h"
#include "aten/engine/overlap.h"
#include "aten/ops/indexing/cpu/combine.h"
#include "aten/ops/indexing/cpu/deterministic_scatter.h"
#include "aten/ops/indexing/cpu/index_plan.h"
#include "aten/ops/indexing/cpu/indexed_rows.h"
#include "aten/ops/scatter.h"
#include "aten/ops/scatter_add.h"
#include "aten/ops/scatter_reduce.h"

namespace treadle::cpu {
namespace {

// The written elements with their offsets: the index tensor, and a source with any strides or one
// value for all.
template <class T>
struct ScatterSource {
  const T* data;
  DimVector strides;
};

template <class T>
ScatterSource<T> elements_of(const Tensor& src) {
  return {static_cast<const T*>(src.data()), at_least_1d(src.strides())};
}

template <class T>
ScatterSource<T> one_value(const T& value, const CheckedIndex& index) {
  return {&value, DimVector(at_least_1d(index.sizes()).size(), 0)};
}

// Writes a run of entries in their order. Entry k stands for target[entry * step + k * across]. All
// arguments are passed by value, because the compiler must assume that a write could change memory.
template <class T, class To, class Write>
[[gnu::always_inline]] inline void scatter_run(To* target, int64_t step, int64_t across,
                                               const Entries entries, int64_t first, int64_t count,
                                               const T* from, int64_t from_across, bool far,
                                               Write write) {
  int64_t k = 0;
  if (far) {
    for (; k < count - kAhead; ++k) {
      __builtin_prefetch(
          entries.unchecked(target + (k + kAhead) * across, first + k + kAhead, step), 1);
      write(target[entries[first + k] * step + k * across], from[k * from_across]);
    }
  }
#pragma GCC unroll 4
  for (; k < count; ++k)
    write(target[entries[first + k] * step + k * across], from[k * from_across]);
}

// A part of a row: `count` entries from entry `first`. The elements of `out` and of the source
// begin at the offsets `to` and `from`.
struct Run {
  int64_t to, from, first, count;
};
using Runs = ArrayRef<Run>;
using WriteRuns = void (*)(const void* context, const Entries& entries, Runs runs);

// Calls write(context, entries, runs) until every row is written. Compiled once for all dtypes.
// Rows may have one element, so a call is given many.
void for_each_run(const Tensor& out, int64_t dim, const CheckedIndex& index,
                  const DimVector& source_strides, WriteRuns write, const void* context) {
  const DimVector sizes = at_least_1d(index.sizes());
  const DimVector strides = at_least_1d(out.strides());
  const int64_t last = static_cast<int64_t>(sizes.size()) - 1;
  const int64_t width = sizes.back();
  const int64_t across = dim == last ? 0 : strides.back();
  const int64_t source_across = source_strides.back();
  // A group is the rows that may write the same elements. It is processed in order, column block by
  // column block.
  const int64_t groups = product(IntList(sizes).slice(0, static_cast<size_t>(std::min(dim, last))));
  const int64_t rows_in_group = index.numel() / width / groups;
  const int64_t block =
      dim == last ? width
                  : std::clamp<int64_t>(kGrain / rows_in_group, 16, std::max<int64_t>(16, width));
  const int64_t blocks = (width + block - 1) / block;
  parallel_for(groups * blocks, grain_for(rows_in_group * block), [&](int64_t begin, int64_t end) {
    const Entries entries = index.entries();  // its own copy, which no write can reach
    IndexedRows to_rows(sizes, strides, dim);
    IndexedRows from_rows(sizes, source_strides, -1);
    std::array<Run, 64> runs;
    size_t kept = 0;
    const auto write_kept = [&] {
      write(context, entries, Runs(runs.data(), kept));
      kept = 0;
    };
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first_row = (task / blocks) * rows_in_group;
      const int64_t first = (task % blocks) * block;
      const int64_t count = std::min(width, first + block) - first;
      to_rows.seek(first_row);
      from_rows.seek(first_row);
      for (int64_t row = first_row; row < first_row + rows_in_group;
           ++row, to_rows.next(), from_rows.next()) {
        runs[kept++] = {to_rows.offset() + first * across,
                        from_rows.offset() + first * source_across, row * width + first, count};
        if (kept == runs.size()) write_kept();
      }
    }
    if (kept > 0) write_kept();
  });
}

// The distance of neighbours in the first `dims` dimensions, seen as one; none where it differs.
std::optional<int64_t> joint_stride(const DimVector& sizes, const DimVector& strides,
                                    int64_t dims) {
  int64_t stride = 0, count = 1;
  for (int64_t d = dims - 1; d >= 0; --d) {
    if (sizes[d] == 1) continue;
    if (count == 1) stride = strides[d];
    if (strides[d] != stride * count) return std::nullopt;
    count *= sizes[d];
  }
  return stride;
}

// `target` has the geometry of `out`, and may be of another type.
template <class T, class To, class Write>
void scatter_rows_to(To* target, const Tensor& out, int64_t dim, const CheckedIndex& index,
                     const ScatterSource<T>& source, Write write) {
  const DimVector sizes = at_least_1d(index.sizes());
  const DimVector strides = at_least_1d(out.strides());
  const int64_t last = static_cast<int64_t>(sizes.size()) - 1;
  const int64_t width = sizes.back();
  const int64_t step = strides[dim];
  const int64_t across = dim == last ? 0 : strides.back();
  const int64_t source_across = source.strides.back();
  if (sizes.size() == 1) {
    const Entries entries = index.entries();
    if (!worth_sorting(width, out.numel())) {
      const bool far = !stays_near(width, static_cast<uint64_t>(out.numel()) * sizeof(To));
      return scatter_run(target, step, 0, entries, 0, width, source.data, source_across, far,
                         write);
    }
    deterministic_scatter(
        width, out.numel(), [=](int64_t k) { return entries[k] * step; },
        [=, from = source.data](int64_t k) {
          write(target[entries[k] * step], from[k * source_across]);
        });
    return;
  }
  // The rows that may write the same elements, where they are few and equally spaced.
  const int64_t rows = dim == last ? 1 : sizes[dim];
  const auto to_group = joint_stride(sizes, strides, dim),
             from_group = joint_stride(sizes, source.strides, dim);
  if (dim >= last - 1 && (rows == 1 || rows * width <= kGrain) && to_group && from_group) {
    const int64_t from_row = dim == last ? 0 : source.strides[dim];
    // With copies, because the compiler must assume that a write could change memory.
    parallel_for(index.numel() / (rows * width), grain_for(rows * width),
                 [=, &index, from = source.data, to_group = *to_group, from_group = *from_group](
                     int64_t begin, int64_t end) {
                   const Entries entries = index.entries();
                   for (int64_t group = begin; group < end; ++group) {
                     for (int64_t row = 0; row < rows; ++row) {
                       scatter_run(target + group * to_group, step, across, entries,
                                   (group * rows + row) * width, width,
                                   from + group * from_group + row * from_row, source_across, false,
                                   write);
                     }
                   }
                 });
    return;
  }
  const auto write_runs = [&](const Entries& entries, Runs runs) {
    for (const Run& run : runs) {
      scatter_run(target + run.to, step, across, entries, run.first, run.count,
                  source.data + run.from, source_across, false, write);
    }
  };
  for_each_run(
      out, dim, index, source.strides,
      [](const void* context, const Entries& entries, Runs runs) {
        (*static_cast<const decltype(write_runs)*>(context))(entries, runs);
      },
      &write_runs);
}

template <class T, class Write>
void scatter_rows(const Tensor& out, int64_t dim, const CheckedIndex& index,
                  const ScatterSource<T>& source, Write write) {
  scatter_rows_to(static_cast<T*>(out.data()), out, dim, index, source, write);
}

// The same for sums and products.
template <class T, class Write>
void fold_rows(const Tensor& out, int64_t dim, const CheckedIndex& index,
               const ScatterSource<T>& source, Write write) {
  if (!worth_wide_sums<T>(index.numel(), out.numel()))
    return scatter_rows(out, dim, index, source, write);
  with_wide_sums(out.data_as<T>(), out.numel(),
                 [&](wide_type<T>* to) { scatter_rows_to(to, out, dim, index, source, write); });
}

// Bounds are checked and copies made before anything is written. f(dim, index) does the writing.
template <class F>
void with_index(const char* op, int64_t dim, const Tensor& index, const Tensor& out, F&& f) {
  dim = wrap_dim(op, dim, out.dim());
  if (index.numel() == 0) return;
  const int64_t size = at_least_1d(out.sizes())[dim];
  f(dim, checked_index(op, index, size, out));
}

// `t` itself unless it shares memory with `out`.
Tensor source_for(const Tensor& t, const Tensor& out) {
  return meets(t, out) ? apart_from(t, out) : t;
}

template <class T>
void scatter_src_cpu(const Tensor& /*self*/, int64_t dim, const Tensor& index, const Tensor& src,
                     const Tensor& out) {
  with_index("scatter", dim, index, out, [&](int64_t d, const CheckedIndex& entries) {
    const Tensor from = source_for(src, out);
    scatter_rows(out, d, entries, elements_of<bits_of<T>>(from), Replace());
  });
}

template <class T>
void scatter_value_cpu(const Tensor& /*self*/, int64_t dim, const Tensor& index,
                       const Scalar& value, const Tensor& out) {
  const T number = value.checked_to<T>("scatter");
  with_index("scatter", dim, index, out, [&](int64_t d, const CheckedIndex& entries) {
    scatter_rows(out, d, entries, one_value(number, entries), Replace());
  });
}

template <class T>
void scatter_add_cpu(const Tensor& /*self*/, int64_t dim, const Tensor& index, const Tensor& src,
                     const Tensor& out) {
  with_index("scatter_add", dim, index, out, [&](int64_t d, const CheckedIndex& entries) {
    const Tensor from = source_for(src, out);
    fold_rows(out, d, entries, elements_of<T>(from), Add());
  });
}

template <class T>
void add_or_multiply(const Tensor& out, int64_t dim, const CheckedIndex& index,
                     const ScatterSource<T>& source, std::string_view reduce) {
  if (reduce == "add") return fold_rows(out, dim, index, source, Add());
  check<ErrorKind::Runtime>(reduce == "multiply", OpName("scatter"),
                            "expected reduce 'add' or 'multiply', got '", reduce, "'");
  fold_rows(out, dim, index, source, Multiply());
}

template <class T>
void scatter_reduce_cpu(const Tensor& /*self*/, int64_t dim, const Tensor& index, const Tensor& src,
                        std::string_view reduce, const Tensor& out) {
  with_index("scatter", dim, index, out, [&](int64_t d, const CheckedIndex& entries) {
    const Tensor from = source_for(src, out);
    add_or_multiply(out, d, entries, elements_of<T>(from), reduce);
  });
}

template <class T>
void scatter_value_reduce_cpu(const Tensor& /*self*/, int64_t dim, const Tensor& index,
                              const Scalar& value, std::string_view reduce, const Tensor& out) {
  const T number = value.checked_to<T>("scatter");
  with_index("scatter", dim, index, out, [&](int64_t d, const CheckedIndex& entries) {
    add_or_multiply(out, d, entries, one_value(number, entries), reduce);
  });
}

// Divides the sums by the number of their terms, `count`. Integers round down.
template <class T>
T divide_by_count(const T& sum, int64_t count) {
  if constexpr (std::is_same_v<T, bool>)
    return element_value(sum);
  else if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_unsigned_v<T>)
      return static_cast<T>(uint64_t{sum} / static_cast<uint64_t>(count));
    const int64_t s = static_cast<int64_t>(sum);
    return static_cast<T>(s / count - (s % count < 0));
  } else {
    return static_cast<T>(static_cast<compute_type<T>>(sum) / static_cast<compute_type<T>>(count));
  }
}

template <class T>
void scatter_reduce_two_cpu(const Tensor& /*self*/, int64_t dim, const Tensor& index,
                            const Tensor& src, std::string_view reduce, bool include_self,
                            const Tensor& out) {
  check<ErrorKind::Runtime>(reduce == "sum" || reduce == "prod" || reduce == "mean" ||
                                reduce == "amax" || reduce == "amin",
                            OpName("scatter_reduce"),
                            "expected reduce 'sum', 'prod', 'mean', 'amax' or 'amin', got '",
                            reduce, "'");
  with_index("scatter_reduce", dim, index, out, [&](int64_t d, const CheckedIndex& entries) {
    const Tensor from = source_for(src, out);
    const ScatterSource<T> source = elements_of<T>(from);
    // Without self, an element starts at the first of the values written to it, or at the identity
    // of the sum.
    if (!include_self && (reduce == "amax" || reduce == "amin")) {
      scatter_rows(out, d, entries, source, Replace());
    } else if (!include_self) {
      const T identity = static_cast<T>(reduce == "prod" ? 1 : 0);
      scatter_rows(out, d, entries, one_value(identity, entries), Replace());
    }
    if (reduce == "prod") return fold_rows(out, d, entries, source, Multiply());
    if (reduce == "amax") return scatter_rows(out, d, entries, source, Largest());
    if (reduce == "amin") return scatter_rows(out, d, entries, source, Smallest());
    fold_rows(out, d, entries, source, Add());
    if (reduce == "sum") return;
    const Tensor counts = empty_cpu(out.sizes(), ScalarType::Int64);
    int64_t* const count = counts.data_as<int64_t>();
    std::fill(count, count + counts.numel(), int64_t{0});
    const int64_t one = 1;
    scatter_rows(counts, d, entries, one_value(one, entries), Add());
    T* const values = out.data_as<T>();
    for (int64_t i = 0; i < out.numel(); ++i) {
      if (count[i] > 0) values[i] = divide_by_count(values[i], count[i] + (include_self ? 1 : 0));
    }
  });
}

const auto scatter_src_registered = register_kernels<aten::ops::scatter_src, DeviceType::CPU>(
    []<class T>() { return &scatter_src_cpu<T>; }, "scatter_src_cpu");
const auto scatter_value_registered = register_kernels<aten::ops::scatter_value, DeviceType::CPU>(
    []<class T>() { return &scatter_value_cpu<T>; }, "scatter_value_cpu");
const auto scatter_reduce_registered = register_kernels<aten::ops::scatter_reduce, DeviceType::CPU>(
    []<class T>() { return &scatter_reduce_cpu<T>; }, "scatter_reduce_cpu");
const auto scatter_value_reduce_registered =
    register_kernels<aten::ops::scatter_value_reduce, DeviceType::CPU>(
        []<class T>() { return &scatter_value_reduce_cpu<T>; }, "scatter_value_reduce_cpu");
const auto scatter_add_registered = register_kernels<aten::ops::scatter_add, DeviceType::CPU>(
    []<class T>() { return &scatter_add_cpu<T>; }, "scatter_add_cpu");
const auto scatter_reduce_two_registered =
    register_kernels<aten::ops::scatter_reduce_two, DeviceType::CPU>(
        []<class T>() { return &scatter_reduce_two_cpu<T>; }, "scatter_reduce_two_cpu");

}  // namespace
}  // namespace treadle::cpu
