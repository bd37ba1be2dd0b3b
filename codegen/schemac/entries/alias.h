// `alias_of:` of an entry: another name of an operator.
//
//   - func: absolute(Tensor self) -> Tensor
//     alias_of: abs
//
// An alias calls its operator. Where it has no keys of its own, its variants, forms, checks and
// dtypes are the operator's. With a `python_module` it is a function of that module, without a
// method and an in-place form.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "codegen/schemac/entries/entry.h"

namespace treadle::schemac {

// Fills in what an alias among `entries` has from its operator, which is one of them, too. No entry
// has been completed by apply_rules.
void complete_alias(Entry& entry, std::span<const Entry> entries, Diagnostics& diagnostics);

}  // namespace treadle::schemac
