// The table of tags.
//
// SPDX-License-Identifier: Apache-2.0
#include "stable_abi/tags.h"

#include "stable_abi/boundary.h"

#define TAGS(X)                    \
  X(core, 0)                       \
  X(cudagraph_unsafe, 1)           \
  X(data_dependent_output, 2)      \
  X(dynamic_output_shape, 3)       \
  X(flexible_layout, 4)            \
  X(generated, 5)                  \
  X(inplace_view, 7)               \
  X(maybe_aliasing_or_mutating, 8) \
  X(needs_contiguous_strides, 9)   \
  X(needs_exact_strides, 10)       \
  X(needs_fixed_stride_order, 11)  \
  X(nondeterministic_bitwise, 12)  \
  X(nondeterministic_seeded, 13)   \
  X(out_variant, 15)               \
  X(pointwise, 16)                 \
  X(pt2_compliant_tag, 17)         \
  X(reduction, 18)                 \
  X(view_copy, 19)

namespace treadle::stable_abi {

const char* name_of_tag(int32_t number) {
  switch (number) {
#define NAME(name, value) \
  case value:             \
    return #name;
    TAGS(NAME)
#undef NAME
    default:
      fail<ErrorKind::Value>("expected the number of a tag, got ", number);
  }
}

}  // namespace treadle::stable_abi

#define NUMBER(name, value) \
  int32_t torch_tag_##name() { return value; }
TAGS(NUMBER)
#undef NUMBER
