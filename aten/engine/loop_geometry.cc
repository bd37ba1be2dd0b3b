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

void order_dimensions(DimVector& shape, DimVector* strides, int operands) {
  const DimVector order = memory_order(shape, strides, operands);
  const DimVector former_shape = shape;
  DimVector kept;  // the innermost dimension of each merged one
  shape.clear();
  for (int64_t o : order) {
    const size_t d = static_cast<size_t>(o);
    if (former_shape[d] == 1) continue;
    bool merge = !kept.empty();
    for (int k = 0; merge && k < operands; ++k)
      merge = strides[k][static_cast<size_t>(kept.back())] == former_shape[d] * strides[k][d];
    if (merge) {
      shape.back() *= former_shape[d];
      kept.back() = o;
    } else {
      shape.push_back(former_shape[d]);
      kept.push_back(o);
    }
  }
  for (int k = 0; k < operands; ++k) {
    const DimVector former = strides[k];
    strides[k].clear();
    for (int64_t d : kept) strides[k].push_back(former[static_cast<size_t>(d)]);
    if (kept.empty()) strides[k].push_back(0);
  }
  if (kept.empty()) shape.push_back(1);
}

}  // namespace treadle
