// LoopGeometry: the common shape of several operands with a stride for each, in an order that
// traverses memory forwards.
//
//   LoopGeometry g(shape);
//   g.add(out_strides, out_item);    // strides in elements, of g.shape's rank
//   g.add(self_strides, self_item);
//   g.order();                       // sort the dimensions, merge neighbours
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/geometry.h"

namespace treadle {

// Sorts the dimensions so that strides of the first operands grow outwards, drops those of size 1,
// merges those that all operands walk as one. At least one dimension is left. Exact: every index
// tuple meets the same elements as before.
void order_dimensions(DimVector& shape, DimVector* strides, int operands);

struct LoopGeometry {
  static constexpr int kMaxOperands = 8;

  explicit LoopGeometry(IntList shape) : shape(shape) {}

  void add(IntList element_strides, int64_t item) {
    DimVector& s = strides[operands++];
    s.resize(element_strides.size());
    for (size_t d = 0; d < s.size(); ++d) s[d] = element_strides[d] * item;
  }

  void order() { order_dimensions(shape, strides, operands); }

  DimVector shape;                  // outermost first
  DimVector strides[kMaxOperands];  // in bytes
  int operands = 0;
};

// The order of dimensions, outermost first, in which the operands' strides shrink; operands that
// come first decide. A stride of 0 (broadcast) decides nothing, and undecided dimensions keep their
// order.
DimVector memory_order(IntList shape, const DimVector* strides, int operands);

}  // namespace treadle
