// The out= and in-place forms of composites: compute, then copy.
//
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "aten/engine/structured.h"
#include "aten/ops/copy_.h"

namespace treadle {

Tensor copy_to_out(const char* op, const Tensor& result, const Tensor& out) {
  copy_to_outs(op, {&result}, {&out});
  return out;
}

void copy_to_outs(const char* op, ArrayRef<const Tensor*> results, ArrayRef<const Tensor*> outs) {
  std::vector<TensorSpec> specs;
  specs.reserve(outs.size());
  for (const Tensor* result : results)
    specs.push_back({result->sizes(), result->dtype(), result->device()});
  require_outs_apart(op, specs, outs);
  std::vector<Output> targets;
  targets.reserve(outs.size());
  for (size_t i = 0; i < outs.size(); ++i) {
    const Tensor &result = *results[i], &out = *outs[i];
    check<ErrorKind::Runtime>(
        !(grad_enabled() && (result.requires_grad() || out.requires_grad())), OpName(op),
        "expected arguments that do not require grad with out=, got one that does");
    targets.emplace_back(op, specs[i], out, results);
  }
  for (size_t i = 0; i < outs.size(); ++i) aten::copy_(targets[i].tensor(), *results[i]);
  for (Output& target : targets) target.finish();
}

Tensor copy_to_self(const char* op, const Tensor& self, const Tensor& result) {
  if (self.is_same(result)) return self;
  check<ErrorKind::Runtime>(result.sizes() == self.sizes(), OpName(op),
                            "expected a result of self's shape ", self.sizes(), ", got ",
                            result.sizes());
  check<ErrorKind::Runtime>(can_cast(result.dtype(), self.dtype()), OpName(op),
                            "expected a result that can be written to self of dtype ",
                            name_of(self.dtype()), ", got ", name_of(result.dtype()));
  return aten::copy_(self, result);
}

}  // namespace treadle
