// The three ranks of operands, and the rule by which a lower rank can raise the dtype.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/promotion.h"

namespace treadle {
namespace {

ScalarType combine(ScalarType higher, ScalarType lower) {
  if (is_complex(higher)) return higher;
  if (is_floating(higher)) return is_complex(lower) ? to_complex(higher) : higher;
  if (higher == ScalarType::Bool || kind_rank(lower) > 1) return promote_types(higher, lower);
  return higher;
}

}  // namespace

void Promotion::add(Rank rank, ScalarType t) {
  if (rank == Number && is_complex(t))
    t = to_complex(default_dtype());
  else if (rank == Number && is_floating(t))
    t = default_dtype();
  std::optional<ScalarType>& slot = by_rank_[rank];
  slot = slot ? promote_types(*slot, t) : t;
}

ScalarType Promotion::result() const {
  std::optional<ScalarType> result;
  for (int rank = Number; rank >= Dimensioned; --rank) {
    const std::optional<ScalarType>& t = by_rank_[rank];
    if (t) result = result ? combine(*t, *result) : *t;
  }
  return result.value_or(ScalarType::Bool);
}

}  // namespace treadle
