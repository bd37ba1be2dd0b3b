// Runs the kernel of a contraction: on views of its tensors where these have the kernel's order of
// dimensions, and otherwise on copies.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "aten/engine/copy.h"
#include "aten/fusion/kernel_call.h"
#include "aten/fusion/memory.h"
#include "aten/ops/_convolution_grad_weight.h"
#include "aten/ops/bmm.h"
#include "aten/ops/convolution.h"
#include "core/base/geometry.h"

namespace treadle::fusion {
namespace {

using Loops = std::vector<int>;

template <class Op, class... Args>
void call(ScalarType dtype, const Args&... args) {
  void* const kernel = Op::op.table().find(kCPU, Layout::Strided, dtype);
  reinterpret_cast<typename Op::Kernel*>(kernel)(args...);
}

// Some dimensions of a tensor, outermost first.
struct Dims {
  DimVector sizes, strides;

  void push(int64_t size, int64_t stride) {
    sizes.push_back(size);
    strides.push_back(stride);
  }
  int64_t count() const { return product(sizes); }
  // The stride of these dimensions as one; nothing where they are not.
  std::optional<int64_t> merged_stride() const {
    int64_t stride = 0, expected = 0;
    for (size_t d = sizes.size(); d-- > 0;) {
      if (sizes[d] == 1) continue;
      if (expected == 0 && stride == 0 && !seen(d)) {
        stride = strides[d];
      } else if (strides[d] != expected) {
        return std::nullopt;
      }
      expected = strides[d] * sizes[d];
    }
    return stride;
  }

 private:
  // Whether a dimension further inside has more than one element.
  bool seen(size_t d) const {
    for (size_t inner = d + 1; inner < sizes.size(); ++inner)
      if (sizes[inner] != 1) return true;
    return false;
  }
};

class Run {
 public:
  Run(const KernelCall& call, const Storage& result)
      : call_(call),
        result_(result),
        result_numel_(static_cast<int64_t>(result->nbytes()) / item_size(call.dtype)) {}

  void run() {
    if (call_.kind == KernelCall::Kind::MatrixProduct) return run_product();
    run_convolution();
  }

 private:
  int64_t size_of(int loop) const { return call_.loops[static_cast<size_t>(loop)]; }

  // The memory of a factor, or that of the result.
  Storage memory_of(const Factor& factor) const {
    return factor.source ? plain_memory(*factor.source) : result_;
  }

  void add(Dims& dims, const Factor& factor, const Loops& loops) const {
    for (const int loop : loops) {
      const IndexAxis* const axis = factor.plain_axis(loop);
      dims.push(size_of(loop), axis ? axis->stride : 0);
    }
  }
  // Adds one dimension, from its end if it is flipped.
  void add(Dims& dims, int64_t& offset, const Factor& factor, int loop, bool is_flipped) const {
    if (loop < 0) return dims.push(1, 0);
    const int64_t size = size_of(loop), stride = factor.plain_axis(loop)->stride;
    if (is_flipped) offset += (size - 1) * stride;
    dims.push(size, is_flipped ? -stride : stride);
  }

  Tensor view(const Factor& factor, const Dims& dims, int64_t offset) const {
    return tensor_on(memory_of(factor), factor.dtype, dims.sizes, dims.strides, offset);
  }

  // ---- what kernels read and write ----

  // The elements of a view as a contiguous tensor of the call's dtype and of this shape.
  Tensor contiguous(const Tensor& view, IntList shape) const {
    Tensor t = view;
    if (!t.is_contiguous() || t.dtype() != call_.dtype) {
      t = empty_cpu(view.sizes(), call_.dtype);
      copy_strided(t, view);
    }
    return alias_with_geometry(t, shape, contiguous_strides(shape), t.storage_offset());
  }

  // Calls `write` with a contiguous tensor of this shape, which then is the result's view.
  template <class Write>
  void write_through(const Tensor& view, IntList shape, Write&& write) const {
    if (view.numel() < result_numel_) std::memset(result_->address(), 0, result_->nbytes());
    if (view.is_contiguous())
      return write(
          alias_with_geometry(view, shape, contiguous_strides(shape), view.storage_offset()));
    const Tensor made = empty_cpu(shape, call_.dtype);
    write(made);
    copy_strided(view,
                 alias_with_geometry(made, view.sizes(), contiguous_strides(view.sizes()), 0));
  }

  // ---- convolutions ----

  void run_convolution() const {
    const auto& c = call_;
    Dims input, weight, output;
    int64_t input_offset = c.input.offset, weight_offset = c.weight.offset,
            output_offset = c.output.offset;
    add(input, c.input, c.batch);
    add(input, c.input, c.groups);
    add(input, c.input, c.in_channels);
    add(output, c.output, c.batch);
    add(output, c.output, c.groups);
    add(output, c.output, c.out_channels);
    add(weight, c.weight, c.groups);
    add(weight, c.weight, c.out_channels);
    add(weight, c.weight, c.in_channels);
    const int64_t batch = count_of(c.batch), groups = count_of(c.groups),
                  in_channels = count_of(c.in_channels), out_channels = count_of(c.out_channels);
    DimVector input_shape{batch, groups * in_channels}, output_shape{batch, groups * out_channels},
        weight_shape{groups * out_channels, in_channels};
    DimVector stride, padding, dilation;
    for (const Window& w : c.windows) {
      const int64_t outer = w.outer < 0 ? 1 : size_of(w.outer),
                    inner = w.inner < 0 ? 1 : size_of(w.inner);
      const int64_t begin = std::max<int64_t>(0, w.low), before = std::max<int64_t>(0, -w.low);
      const int64_t needed = w.step * (outer - 1) + w.dilation * (inner - 1) + 1 - before;
      int64_t length = std::min(w.extent - begin, needed);
      // The kernel looks at no element behind.
      const bool may_have_more = !w.is_part && c.input.source != nullptr;
      if (may_have_more && w.extent - begin < needed + w.step) length = w.extent - begin;
      input_offset += begin * w.stride;
      input.push(length, w.stride);
      add(output, output_offset, c.output, w.outer, w.outer_is_flipped);
      add(weight, weight_offset, c.weight, w.inner, w.inner_is_flipped);
      input_shape.push_back(length);
      output_shape.push_back(outer);
      weight_shape.push_back(inner);
      stride.push_back(w.step);
      padding.push_back(before);
      dilation.push_back(w.dilation);
    }
    const DimVector none(c.windows.size());
    const Tensor in = view(c.input, input, input_offset),
                 out = view(c.output, output, output_offset),
                 kernel = view(c.weight, weight, weight_offset);
    using aten::ops::_convolution_grad_weight;
    using aten::ops::convolution;
    switch (c.kind) {
      case KernelCall::Kind::Convolution:
        return write_through(out, output_shape, [&](const Tensor& to) {
          call<convolution>(c.dtype, contiguous(in, input_shape), contiguous(kernel, weight_shape),
                            Tensor(), IntList(stride), IntList(padding), IntList(dilation), false,
                            IntList(none), groups, to);
        });
      case KernelCall::Kind::InputGradient:
        return write_through(in, input_shape, [&](const Tensor& to) {
          call<convolution>(c.dtype, contiguous(out, output_shape),
                            contiguous(kernel, weight_shape), Tensor(), IntList(stride),
                            IntList(padding), IntList(dilation), true, IntList(none), groups, to);
        });
      default:
        return write_through(kernel, weight_shape, [&](const Tensor& to) {
          call<_convolution_grad_weight>(c.dtype, contiguous(out, output_shape),
                                         contiguous(in, input_shape), IntList(weight_shape),
                                         IntList(stride), IntList(padding), IntList(dilation),
                                         groups, to);
        });
    }
  }
  int64_t count_of(const Loops& loops) const {
    int64_t count = 1;
    for (const int loop : loops) count *= size_of(loop);
    return count;
  }

  // ---- products of matrices ----

  // A factor as matrices: of `batch`, `rows` and `columns`, each with its strides.
  struct Matrices {
    Tensor base;  // dtype and memory
    int64_t offset;
    DimVector batch;  // strides
    int64_t rows, columns;
  };

  Matrices matrices(const Factor& factor, const Loops& batch, const Loops& rows,
                    const Loops& columns) const {
    Dims of_batch, of_rows, of_columns;
    add(of_batch, factor, batch);
    add(of_rows, factor, rows);
    add(of_columns, factor, columns);
    const auto row = of_rows.merged_stride(), column = of_columns.merged_stride();
    if (row && column && factor.dtype == call_.dtype) {
      Dims all = of_batch;
      all.push(of_rows.count(), *row);
      all.push(of_columns.count(), *column);
      return {view(factor, all, factor.offset), factor.offset, of_batch.strides, *row, *column};
    }
    // A copy, which repeats nothing.
    Dims all;
    for (size_t d = 0; d < batch.size(); ++d)
      if (of_batch.strides[d] != 0) all.push(of_batch.sizes[d], of_batch.strides[d]);
    add(all, factor, rows);
    add(all, factor, columns);
    const Tensor packed = empty_cpu(all.sizes, call_.dtype);
    copy_strided(packed, view(factor, all, factor.offset));
    const int64_t k = of_columns.count();
    int64_t step = of_rows.count() * k;
    for (size_t d = batch.size(); d-- > 0;) {
      if (of_batch.strides[d] == 0) continue;
      of_batch.strides[d] = step;
      step *= of_batch.sizes[d];
    }
    return {packed, 0, of_batch.strides, k, 1};
  }

  void run_product() const {
    const auto& c = call_;
    // The loops of the result as they lie in memory, the last ones of one factor, those before of
    // the other.
    Loops order;
    for (int l = 0; l < static_cast<int>(c.loops.size()); ++l)
      if (c.output.has(l)) order.push_back(l);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return std::abs(c.output.plain_axis(a)->stride) > std::abs(c.output.plain_axis(b)->stride);
    });
    const auto is_of = [](const Loops& loops, int l) {
      return std::find(loops.begin(), loops.end(), l) != loops.end();
    };
    const bool last_is_row = !order.empty() && is_of(c.batch, order.back());
    const Loops& last = last_is_row ? c.batch : c.out_channels;
    const Loops& before = last_is_row ? c.out_channels : c.batch;
    size_t middle = order.size();
    while (middle > 0 && is_of(last, order[middle - 1])) --middle;
    size_t first = middle;
    while (first > 0 && is_of(before, order[first - 1])) --first;
    const Loops batch(order.begin(), order.begin() + static_cast<ptrdiff_t>(first));
    const Loops rows(order.begin() + static_cast<ptrdiff_t>(first),
                     order.begin() + static_cast<ptrdiff_t>(middle));
    const Loops columns(order.begin() + static_cast<ptrdiff_t>(middle), order.end());
    const Matrices left = matrices(last_is_row ? c.weight : c.input, batch, rows, c.in_channels);
    Matrices right = matrices(last_is_row ? c.input : c.weight, batch, columns, c.in_channels);
    Dims out;
    add(out, c.output, order);
    const DimVector shape{count_of(batch), count_of(rows), count_of(columns)};
    write_through(view(c.output, out, c.output.offset), shape, [&](const Tensor& to) {
      multiply(left, right, batch, count_of(c.in_channels), to);
    });
  }

  // One call for the last loops of the batch that are one for both factors.
  void multiply(const Matrices& left, const Matrices& right, const Loops& batch, int64_t inner,
                const Tensor& out) const {
    size_t first = batch.size();
    Dims l, r;
    while (first > 0) {
      Dims more_l, more_r;
      for (size_t d = first - 1; d < batch.size(); ++d) {
        more_l.push(size_of(batch[d]), left.batch[d]);
        more_r.push(size_of(batch[d]), right.batch[d]);
      }
      if (!more_l.merged_stride() || !more_r.merged_stride()) break;
      l = more_l, r = more_r;
      --first;
    }
    const int64_t together = l.count(), rows = out.sizes()[1], columns = out.sizes()[2];
    DimVector at(first);
    for (int64_t done = 0; done < out.sizes()[0]; done += together) {
      int64_t from_left = left.offset, from_right = right.offset;
      for (size_t d = 0; d < first; ++d) {
        from_left += at[d] * left.batch[d];
        from_right += at[d] * right.batch[d];
      }
      call<aten::ops::bmm>(
          call_.dtype,
          alias_with_geometry(left.base, {together, rows, inner},
                              {l.merged_stride().value(), left.rows, left.columns}, from_left),
          alias_with_geometry(right.base, {together, inner, columns},
                              {r.merged_stride().value(), right.columns, right.rows}, from_right),
          alias_with_geometry(out, {together, rows, columns}, {rows * columns, columns, 1},
                              out.storage_offset() + done * rows * columns));
      for (size_t d = first; d-- > 0;) {
        if (++at[d] < size_of(batch[d])) break;
        at[d] = 0;
      }
    }
  }

  const KernelCall& call_;
  const Storage result_;
  int64_t result_numel_;
};

}  // namespace

void run(const KernelCall& call, const Storage& result) { Run(call, result).run(); }

}  // namespace treadle::fusion
