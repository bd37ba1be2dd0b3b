// The out= form of composites: compute, then copy.
#include "aten/ops/copy_.h"
#include "aten/structured.h"

namespace treadle {

Tensor copy_to_out(const char* op, const Tensor& result, const Tensor& out) {
  check<ErrorKind::Runtime>(!(grad_enabled() && (result.requires_grad() || out.requires_grad())), op,
                            ": expected arguments that do not require grad with out=, got one that does");
  if (out.is_same(result)) return out;
  Output target(op, TensorSpec{result.sizes(), result.dtype(), result.device()}, out, {&result});
  aten::copy_(target.tensor(), result);
  return target.finish();
}

}  // namespace treadle
