// Shapes and strides of views.
//
// SPDX-License-Identifier: Apache-2.0

#include "aten/engine/strides/view_shapes.h"

#include <algorithm>

namespace treadle::shape {

DimVector infer_size(const char* op, IntList sizes, int64_t numel) {
  DimVector result(sizes);
  int64_t known = 1;
  int64_t inferred = -1;
  bool fits = true;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == -1) {
      check<ErrorKind::Runtime>(inferred < 0, OpName(op),
                                "expected at most one size of -1, got shape = ", sizes);
      inferred = static_cast<int64_t>(d);
    } else {
      check<ErrorKind::Runtime>(sizes[d] >= 0, OpName(op),
                                "expected sizes >= -1, got shape = ", sizes);
      fits = fits && !__builtin_mul_overflow(known, sizes[d], &known);
    }
  }
  if (fits && inferred >= 0) {
    check<ErrorKind::Runtime>(known != 0 || numel != 0, OpName(op),
                              "expected a shape whose size of -1 is decided, got shape = ", sizes,
                              " for no elements");
    fits = known != 0 && numel % known == 0;
    if (fits) result[static_cast<size_t>(inferred)] = numel / known;
  } else {
    fits = fits && known == numel;
  }
  check<ErrorKind::Runtime>(fits, OpName(op), "expected a shape of ", numel,
                            " elements, got shape = ", sizes);
  return result;
}

std::optional<DimVector> view_strides(IntList old_sizes, IntList old_strides, IntList sizes) {
  if (product(old_sizes) == 0)
    return sizes == old_sizes ? DimVector(old_strides) : contiguous_strides(sizes);

  // Runs of old dimensions that one stride covers, innermost first.
  struct Run {
    int64_t size, stride;
  };
  std::vector<Run> runs;
  for (size_t d = old_sizes.size(); d-- > 0;) {
    if (old_sizes[d] == 1) continue;
    if (!runs.empty() && old_strides[d] == runs.back().stride * runs.back().size)
      runs.back().size *= old_sizes[d];
    else
      runs.push_back({old_sizes[d], old_strides[d]});
  }
  if (runs.empty()) return contiguous_strides(sizes);

  // Every new dimension must lie inside one run.
  DimVector strides(sizes.size());
  size_t run = 0;
  int64_t left = runs[0].size, stride = runs[0].stride;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] != 1 && left == 1) {
      ++run;
      left = runs[run].size;
      stride = runs[run].stride;
    }
    strides[d] = stride;
    if (left % sizes[d] != 0) return std::nullopt;
    left /= sizes[d];
    stride *= sizes[d];
  }
  return strides;
}

DimVector strides_in_format(const char* op, IntList sizes, MemoryFormat format) {
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve)
    return contiguous_strides(sizes);
  const size_t rank = format == MemoryFormat::ChannelsLast ? 4 : 5;
  check<ErrorKind::Runtime>(sizes.size() == rank, OpName(op), "expected ", rank, " dimensions for ",
                            format, ", got sizes = ", sizes);
  // The order N, spatial dimensions, C, from the outermost.
  DimVector moved;
  moved.push_back(sizes[0]);
  for (size_t d = 2; d < rank; ++d) moved.push_back(sizes[d]);
  moved.push_back(sizes[1]);
  const DimVector in_order = contiguous_strides(moved);
  DimVector strides(rank);
  strides[0] = in_order[0];
  strides[1] = in_order[rank - 1];
  for (size_t d = 2; d < rank; ++d) strides[d] = in_order[d - 1];
  return strides;
}

bool is_dense(const Tensor& t) {
  if (t.is_contiguous()) return true;
  DimVector order;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (t.sizes()[d] != 1) order.push_back(d);
  }
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return t.strides()[a] < t.strides()[b]; });
  int64_t expected = 1;
  for (int64_t d : order) {
    if (t.strides()[d] != expected) return false;
    expected *= t.sizes()[d];
  }
  return true;
}

DimVector broadcast_sizes(const char* op, IntList a, IntList b) {
  std::optional<DimVector> shape = broadcast_shape(a, b);
  check<ErrorKind::Runtime>(shape.has_value(), OpName(op), "expected shapes that broadcast, got ",
                            a, " and ", b);
  return *std::move(shape);
}

}  // namespace treadle::shape
