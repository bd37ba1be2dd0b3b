// The steps of a gradient scaler between backward and step. They run on the device of the numbers,
// so the host does not wait for queued work.
//
// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <vector>

#include "aten/engine/stored_types.h"
#include "aten/engine/tensor_lists.h"
#include "aten/ops/_amp_foreach_non_finite_check_and_unscale_.h"
#include "aten/ops/_amp_update_scale_.h"
#include "aten/ops/add.h"
#include "aten/ops/all.h"
#include "aten/ops/copy_.h"
#include "aten/ops/eq.h"
#include "aten/ops/isfinite.h"
#include "aten/ops/logical_and.h"
#include "aten/ops/logical_not.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/mul.h"
#include "aten/ops/ne.h"
#include "aten/ops/reshape.h"
#include "aten/ops/where.h"
#include "core/base/error.h"
#include "core/base/layers.h"

namespace treadle::composite {
namespace {

// The tensor without dimensions, sharing memory.
Tensor one_number(const char* op, const char* name, const Tensor& t, bool (*fits)(ScalarType),
                  const char* kind) {
  check<ErrorKind::Runtime>(t.numel() == 1 && fits(t.dtype()), OpName(op), "expected ", name,
                            " to be one ", kind, " number, got shape ", t.sizes(), " of dtype ",
                            name_of(t.dtype()));
  return aten::reshape(t, IntList());
}

Tensor one_float(const char* op, const char* name, const Tensor& t) {
  return one_number(
      op, name, t, [](ScalarType dtype) { return is_floating(dtype); }, "floating");
}

// RuntimeError unless a write to the tensor is allowed, which is found out before the first write.
void require_no_record(const char* op, const char* name, const Tensor& t) {
  check<ErrorKind::Runtime>(!(grad_enabled() && t.requires_grad()), OpName(op), "expected ", name,
                            " to require no grad, got one that does; call it within no_grad()");
  check<ErrorKind::Runtime>(
      !t.impl()->is_inference() || inference_enabled(), OpName(op), "expected ", name,
      " to be a normal tensor outside inference mode, got an inference tensor");
}

}  // namespace

void _amp_foreach_non_finite_check_and_unscale_(TensorList self, const Tensor& found_inf,
                                                const Tensor& inv_scale) {
  const char* const op = "_amp_foreach_non_finite_check_and_unscale_";
  const Tensor found = one_float(op, "found_inf", found_inf);
  const Tensor factor = one_float(op, "inv_scale", inv_scale);
  for (size_t i = 0; i < self.size(); ++i) {
    if (!is_floating(self[i].dtype()) || !is_convertible(self[i].dtype())) {
      fail<ErrorKind::NotImplemented>(OpName(op), "expected self[", i,
                                      "] of a floating dtype with arithmetic, got ",
                                      name_of(self[i].dtype()));
    }
    check<ErrorKind::Runtime>(self[i].device() == found.device(), OpName(op), "expected self[", i,
                              "] on ", found.device(), ", as found_inf, got ", self[i].device());
  }
  check<ErrorKind::Runtime>(factor.device() == found.device(), OpName(op), "expected inv_scale on ",
                            found.device(), ", as found_inf, got ", factor.device());
  require_writable(op, self);
  require_writable(op, std::vector<Tensor>{found});
  for (const Tensor& t : self) require_no_record(op, "self", t);
  require_no_record(op, "found_inf", found_inf);
  const NoGrad no_grad;
  for (const Tensor& t : self) {
    aten::masked_fill_(found, aten::logical_not(aten::all(aten::isfinite(t))), 1);
    aten::mul_(t, factor);
  }
}

Tensor _amp_update_scale_(const Tensor& self, const Tensor& growth_tracker, const Tensor& found_inf,
                          double scale_growth_factor, double scale_backoff_factor,
                          int64_t growth_interval) {
  const char* const op = "_amp_update_scale_";
  const Tensor scale = one_float(op, "self", self);
  const Tensor steps = one_number(
      op, "growth_tracker", growth_tracker,
      [](ScalarType dtype) { return dtype == ScalarType::Int32; }, "int32");
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  check<ErrorKind::Runtime>(growth_interval >= 0 && growth_interval <= kMax, OpName(op),
                            "expected growth_interval from 0 to ", kMax, ", got ", growth_interval);
  require_writable(op, std::vector<Tensor>{scale, steps});
  require_no_record(op, "self", self);
  require_no_record(op, "growth_tracker", growth_tracker);
  const NoGrad no_grad;
  const Tensor overflowed = aten::ne(one_float(op, "found_inf", found_inf), 0);
  const Tensor counted = aten::masked_fill(aten::add(steps, 1), overflowed, 0);
  const Tensor long_enough = aten::eq(counted, growth_interval);
  const Tensor grown = aten::mul(scale, scale_growth_factor);
  const Tensor smaller = aten::where(overflowed, aten::mul(scale, scale_backoff_factor), scale);
  aten::copy_(scale,
              aten::where(aten::logical_and(long_enough, aten::isfinite(grown)), grown, smaller));
  aten::copy_(steps, counted);
  aten::masked_fill_(steps, long_enough, 0);
  return self;
}

}  // namespace treadle::composite
