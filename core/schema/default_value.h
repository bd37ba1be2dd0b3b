// Reads the default value of an argument and checks that it fits the argument's type.
//
//   Scalar alpha=1     int[2] stride=1     int[] dim=[-2,-1]     str mode='linear'
//   Tensor? bias=None
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/schema/function_schema.h"
#include "core/schema/lexer.h"
#include "core/schema/type.h"

namespace treadle::schema {

// Reads one default and leaves the cursor behind it. Throws SchemaError if the default does not fit
// `type`.
Default parse_default(TokenCursor& cursor, const Type& type, std::string_view argument);

}  // namespace treadle::schema
