// Conversions between Python and boxed calls, by the types of a schema that is known only at run
// time.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dispatch/value.h"
#include "core/schema/function_schema.h"
#include "python_bindings/csrc/arguments/arg_parser.h"

namespace treadle::python {

// The argument parser's view of an argument. The names point into `argument` and `default_text`.
Param param_of(const schema::Argument& argument, const char* default_text, bool tensors_only);

// The value for a boxed call. `o` is of the type: the parser or fits_result() has checked it.
Value to_value(const char* op, const schema::Type& type, PyObject* o);
// Lists become lists, an undefined tensor None.
Object to_python(const Value& value);
// The default as a value.
Value default_value(const schema::Argument& argument);

// The object that a Python kernel receives for `o`: an int for a NumPy integer, a float for an int
// where the schema says float, a list for a tuple. It is the object itself if nothing needs to
// change.
Object as_schema_says(const char* op, const schema::Type& type, PyObject* o);
// Whether the result of a Python kernel is of the type.
bool fits_result(const schema::Type& type, PyObject* o);

}  // namespace treadle::python
