// Conversions between Python and boxed calls, by the types of a schema that is known only at run
// time.
#pragma once

#include "core/dispatch/value.h"
#include "core/schema/function_schema.h"
#include "python_bindings/csrc/arguments/arg_parser.h"

namespace treadle::python {

// How the argument parser sees an argument. The names point into `argument` and `default_text`.
Param param_of(const schema::Argument& argument, const char* default_text, bool tensors_only);

// The value for a boxed call; `o` is of the type, by the parser or by fits_result().
Value to_value(const char* op, const schema::Type& type, PyObject* o);
// Lists become lists, an undefined tensor None.
Object to_python(const Value& value);
// The default as a value.
Value default_value(const schema::Argument& argument);

// What a kernel in Python is given for `o`: an int for a NumPy one, a float for an int where the
// schema says float, a list for a tuple. The object itself where nothing is to be changed.
Object as_schema_says(const char* op, const schema::Type& type, PyObject* o);
// Whether what a kernel in Python returned is of the type.
bool fits_result(const schema::Type& type, PyObject* o);

}  // namespace treadle::python
