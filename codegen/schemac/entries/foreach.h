// `foreach:` of an entry: the operators that do for lists of tensors what the entry does for one.
//
//   - func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
//     forms: functional, inplace, out
//     foreach: _foreach_add.List, _foreach_add.Tensor
//
// gives, each also as _foreach_add_ in place,
//
//   _foreach_add.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]
//   _foreach_add.Tensor(Tensor[] self, Tensor other, *, Scalar alpha=1) -> Tensor[]
//
// A name's overload says which arguments are lists: under `Tensor` all tensors but the last
// argument, which is one tensor for all, or one that holds a number for each; under `ScalarList`
// all tensors and the last number; under any other all tensors. Arguments that have other names, or
// stand by position, are written behind a name: {_foreach_add.Scalar: [self, other=scalar]}.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "codegen/schemac/entries/entry.h"

namespace treadle::schemac {

// The entries that the entry's `foreach` gives, in its order; none for a request that is reported.
// `entry` has been completed by apply_rules; the results have not.
std::vector<Entry> foreach_entries(const Entry& entry, Diagnostics& diagnostics);

}  // namespace treadle::schemac
