// The rules between the keys of an entry, and what follows from them: the operator's kind, its
// forms, its defaults.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/schemac/diagnostics.h"
#include "codegen/schemac/entries/entry.h"

namespace treadle::schemac {

// Completes `entry.op` and reports every rule it breaks.
void apply_rules(Entry& entry, const ScalarFunctions& functions, Diagnostics& diagnostics);

}  // namespace treadle::schemac
