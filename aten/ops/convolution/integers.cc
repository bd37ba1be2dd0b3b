// Convolutions of integers: one product of matrices for each element of the kernel, all added up.
// They are rare and small, so there is no kernel for them.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/convolution/integers.h"

#include <algorithm>

#include "aten/ops/add.h"
#include "aten/ops/constant_pad_nd.h"
#include "aten/ops/convolution.h"
#include "aten/ops/convolution/shape.h"
#include "aten/ops/matmul.h"
#include "aten/ops/narrow.h"
#include "aten/ops/reshape.h"
#include "aten/ops/select.h"
#include "aten/ops/slice.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/transpose.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/zeros.h"

namespace treadle::composite {
namespace {

// One call: input (N, C, spatial...).
class IntegerConvolution {
 public:
  IntegerConvolution(const Tensor& input, const Tensor& weight, IntList stride, IntList padding,
                     IntList dilation, int64_t groups, IntList out_sizes)
      : input_(input),
        weight_(weight),
        stride_(stride),
        padding_(padding),
        dilation_(dilation),
        groups_(groups),
        out_sizes_(out_sizes),
        spatial_(weight.sizes().size() - 2) {}

  Tensor forward() const {
    DimVector pad;
    for (size_t d = spatial_; d-- > 0;) {
      pad.push_back(shape::entry_of(padding_, d));
      pad.push_back(shape::entry_of(padding_, d));
    }
    const Tensor padded = aten::constant_pad_nd(input_, pad);
    const Tensor out = zeros(out_sizes_);
    for_each_element([&](const DimVector& at, const Tensor& matrices) {
      const Tensor seen = strided(padded, at, out_sizes_.slice(2));
      aten::add_(out, aten::reshape(aten::matmul(matrices, rows(seen)), out_sizes_));
    });
    return out;
  }

  // Each element of the input is written to all positions that it came from.
  Tensor transposed() const {
    DimVector whole(out_sizes_), small(out_sizes_);
    for (size_t d = 0; d < spatial_; ++d) {
      whole[d + 2] += 2 * shape::entry_of(padding_, d);
      small[d + 2] = input_.sizes()[d + 2];
    }
    const Tensor out = zeros(whole);
    const Tensor from = rows(input_);
    for_each_element([&](const DimVector& at, const Tensor& matrices) {
      const Tensor part = aten::matmul(aten::transpose(matrices, -2, -1), from);
      aten::add_(strided(out, at, input_.sizes().slice(2)), aten::reshape(part, small));
    });
    Tensor cut = out;
    for (size_t d = 0; d < spatial_; ++d)
      cut = aten::narrow(cut, static_cast<int64_t>(d) + 2, shape::entry_of(padding_, d),
                         out_sizes_[d + 2]);
    return cut;
  }

 private:
  Tensor zeros(IntList sizes) const {
    return aten::zeros(sizes, input_.dtype(), std::nullopt, input_.device());
  }
  // (N, C, spatial...) as (N, groups, C / groups, positions).
  Tensor rows(const Tensor& t) const {
    const int64_t positions = product(t.sizes().slice(2));
    return aten::reshape(t, {t.size(0), groups_, t.size(1) / groups_, positions});
  }
  // The part of `t`, of these sizes, that the element `at` of the kernel sees.
  Tensor strided(Tensor t, const DimVector& at, IntList sizes) const {
    for (size_t d = 0; d < spatial_; ++d) {
      const int64_t step = shape::entry_of(stride_, d);
      const int64_t first = at[d] * shape::entry_of(dilation_, d);
      t = aten::slice(t, static_cast<int64_t>(d) + 2, first, first + (sizes[d] - 1) * step + 1,
                      step);
    }
    return t;
  }
  // Calls f(coordinates, matrices (groups, rows, columns)) for every element of the kernel.
  template <class F>
  void for_each_element(F&& f) const {
    const IntList kernel = weight_.sizes().slice(2);
    DimVector at(spatial_, 0);
    if (std::find(kernel.begin(), kernel.end(), 0) != kernel.end()) return;
    for (bool more = true; more;) {
      Tensor w = weight_;
      for (size_t d = spatial_; d-- > 0;) w = aten::select(w, -1, at[d]);
      f(at, aten::reshape(w, {groups_, w.size(0) / groups_, w.size(1)}));
      more = false;
      for (size_t d = spatial_; d-- > 0 && !more;) {
        more = ++at[d] < kernel[d];
        if (!more) at[d] = 0;
      }
    }
  }

  const Tensor& input_;
  const Tensor& weight_;
  IntList stride_, padding_, dilation_;
  int64_t groups_;
  IntList out_sizes_;
  size_t spatial_;
};

}  // namespace

Tensor integer_convolution(const char* op, const Tensor& input, const Tensor& weight,
                           const Tensor& bias, IntList stride, IntList padding, IntList dilation,
                           bool transposed, IntList output_padding, int64_t groups) {
  const TensorSpec spec = shape::convolution(op, input, weight, bias, stride, padding, dilation,
                                             transposed, output_padding, groups);
  for (const Tensor* other : {&weight, &bias}) {
    check<ErrorKind::Runtime>(!other->defined() || other->dtype() == input.dtype(), OpName(op),
                              "expected weight and bias of the input's dtype ", input.dtype(),
                              ", got ", other->defined() ? other->dtype() : input.dtype());
  }
  const bool batched = input.dim() == weight.dim();
  const Tensor samples = batched ? input : aten::unsqueeze(input, 0);
  DimVector sizes(spec.sizes);
  if (!batched) sizes.insert(0, 1);
  const IntegerConvolution call(samples, weight, stride, padding, dilation, groups, sizes);
  Tensor out = transposed ? call.transposed() : call.forward();
  if (bias.defined()) {
    DimVector channels(static_cast<size_t>(weight.dim()), 1);
    channels[1] = bias.numel();
    out = aten::add(out, aten::reshape(bias, channels));
  }
  return batched ? out : aten::squeeze(out, 0);
}

}  // namespace treadle::composite
