// Ordering and merging of dimensions.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/loop_geometry.h"

namespace treadle {
namespace {

int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

// Whether dimension `outer`, now outside `inner`, should be inside it: 1 yes, -1 no, 0 undecided.
int should_swap(IntList shape, const DimVector* strides, int operands, size_t outer, size_t inner) {
  for (int k = 0; k < operands; ++k) {
    const int64_t so = magnitude(strides[k][outer]), si = magnitude(strides[k][inner]);
    if (so == 0 || si == 0) continue;
    if (so != si) return so < si ? 1 : -1;
    if (shape[outer] != shape[inner]) return shape[outer] < shape[inner] ? 1 : -1;
  }
  return 0;
}

}  // namespace

DimVector memory_order(IntList shape, const DimVector* strides, int operands) {
  const size_t rank = shape.size();
  DimVector order(rank);
  for (size_t d = 0; d < rank; ++d) order[d] = static_cast<int64_t>(d);
  // Insertion sort from the innermost dimension outwards: "undecided" is not transitive, so no
  // other sort will do.
  for (size_t first = rank; first-- > 0;) {
    size_t at = first;
    for (size_t d = first + 1; d < rank; ++d) {
      const int swap = should_swap(shape, strides, operands, static_cast<size_t>(order[at]),
                                   static_cast<size_t>(order[d]));
      if (swap > 0) {
        std::swap(order[at], order[d]);
        at = d;
      } else if (swap < 0) {
        break;
      }
    }
  }
  return order;
}

void LoopGeometry::order() {
  const DimVector order = memory_order(shape, strides, operands);
  DimVector new_shape;
  DimVector new_strides[kMaxOperands];
  for (int64_t o : order) {
    const size_t d = static_cast<size_t>(o);
    if (shape[d] == 1) continue;
    bool merge = !new_shape.empty();
    for (int k = 0; merge && k < operands; ++k)
      merge = new_strides[k].back() == shape[d] * strides[k][d];
    if (merge) {
      new_shape.back() *= shape[d];
      for (int k = 0; k < operands; ++k) new_strides[k].back() = strides[k][d];
    } else {
      new_shape.push_back(shape[d]);
      for (int k = 0; k < operands; ++k) new_strides[k].push_back(strides[k][d]);
    }
  }
  if (new_shape.empty()) {
    new_shape.push_back(1);
    for (int k = 0; k < operands; ++k) new_strides[k].push_back(0);
  }
  shape = std::move(new_shape);
  for (int k = 0; k < operands; ++k) strides[k] = std::move(new_strides[k]);
}

}  // namespace treadle
