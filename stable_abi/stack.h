// Values of a boxed call as extensions know them: 64 bits each.
//
//   bool, int, float               the value itself
//   dtype, layout, memory format   their numbers
//   Device                         the number of its type in the upper half, its index in the lower
//   Tensor, str, Generator, T[]    a handle
//   T?                             0, or the address of the value in memory of its own
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dispatch/value.h"
#include "core/schema/function_schema.h"
#include "stable_abi/boundary.h"

namespace treadle::stable_abi {

// The value for an extension, which owns what it points to. NotImplementedError for a type that has
// no such form: Scalar. `name` names the value in messages.
StableIValue to_stable(const Value& value, const schema::Type& type, std::string_view name);
// The value from an extension; takes over what it points to.
Value adopt_value(StableIValue value, const schema::Type& type, std::string_view name);

}  // namespace treadle::stable_abi
