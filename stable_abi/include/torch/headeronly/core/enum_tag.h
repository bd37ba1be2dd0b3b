// Tag: what an operator says of itself where it is defined, by PyTorch's names.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

// X(name) for each.
#define TREADLE_TAGS(X)         \
  X(core)                       \
  X(cudagraph_unsafe)           \
  X(data_dependent_output)      \
  X(dynamic_output_shape)       \
  X(flexible_layout)            \
  X(generated)                  \
  X(inplace_view)               \
  X(maybe_aliasing_or_mutating) \
  X(needs_contiguous_strides)   \
  X(needs_exact_strides)        \
  X(needs_fixed_stride_order)   \
  X(nondeterministic_bitwise)   \
  X(nondeterministic_seeded)    \
  X(out_variant)                \
  X(pointwise)                  \
  X(pt2_compliant_tag)          \
  X(reduction)                  \
  X(view_copy)

namespace torch::headeronly {
enum class Tag {
#define TREADLE_TAG(name) name,
  TREADLE_TAGS(TREADLE_TAG)
#undef TREADLE_TAG
};
}  // namespace torch::headeronly
namespace at {
using torch::headeronly::Tag;
}
