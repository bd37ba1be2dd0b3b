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

inline std::string_view name_of(const schema::Argument& argument) { return argument.name; }
inline std::string_view name_of(const schema::Return&) { return "a result"; }

// The value for an extension, which owns what it points to. NotImplementedError for a type that has
// no such form: Scalar. `name` names the value in messages.
StableIValue to_stable(const Value& value, const schema::Type& type, std::string_view name);
// The value from an extension; takes over what it points to, also where it throws.
Value adopt_value(StableIValue value, const schema::Type& type, std::string_view name);
// Frees what a value points to that nobody will take over.
void drop_value(StableIValue value, const schema::Type& type) noexcept;

// All values of a call, `places[i]` being an argument or a return of the schema. Where one has no
// such form, those before it are freed.
template <class Places>
void to_stable(const Stack& stack, const Places& places, StableIValue* values) {
  size_t made = 0;
  try {
    for (; made < stack.size(); ++made)
      values[made] = to_stable(stack[made], places[made].type, name_of(places[made]));
  } catch (...) {
    while (made-- > 0) drop_value(values[made], places[made].type);
    throw;
  }
}
// All values from an extension, which are pushed on the stack. Where one is refused, those after
// it are freed.
template <class Places>
void adopt_values(const StableIValue* values, const Places& places, Stack& stack) {
  size_t taken = 0;
  try {
    for (; taken < places.size(); ++taken)
      stack.push_back(adopt_value(values[taken], places[taken].type, name_of(places[taken])));
  } catch (...) {
    while (++taken < places.size()) drop_value(values[taken], places[taken].type);
    throw;
  }
}

}  // namespace treadle::stable_abi
