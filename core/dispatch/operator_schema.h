// The parsed schema of an operator, in the grammar's types. It is parsed once, for boxed calls.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dispatch/operator.h"
#include "core/schema/function_schema.h"

namespace treadle {

// Lives as long as the process. Thread-safe.
const schema::FunctionSchema& schema_of(const Operator& op);

}  // namespace treadle
