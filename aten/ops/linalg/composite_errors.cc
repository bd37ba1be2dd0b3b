// Reads `info` and names the matrix that failed.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/linalg/composite_errors.h"

#include "aten/ops/any.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/item.h"
#include "aten/ops/ne.h"
#include "aten/ops/reshape.h"
#include "aten/ops/select.h"

namespace treadle::composite {

void require_success(const char* op, const char* what, const Tensor& info) {
  if (info.is_meta() || info.numel() == 0) return;
  if (!aten::item(aten::any(aten::ne(info, 0))).to<bool>()) return;
  const Tensor flat = aten::reshape(info, {-1});
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const int64_t failed = aten::item(aten::select(flat, 0, i)).to<int64_t>();
    if (failed == 0) continue;
    if (info.dim() == 0) fail<ErrorKind::LinAlg>(OpName(op), what, " ", failed);
    const DimVector index = unravel(info.sizes(), i);
    fail<ErrorKind::LinAlg>(OpName(op), what, " ", failed, " at batch index ", IntList(index));
  }
}

}  // namespace treadle::composite
