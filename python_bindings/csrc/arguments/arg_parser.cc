// Matches a call's arguments with signatures, and writes the message when none fits.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/arguments/arg_parser.h"

#include <cstring>

#include "aten/ops/to.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/dispatch/overrides.h"

namespace treadle::python::detail {
namespace {

// Alternative names for a parameter: those of NumPy, `input` for the first tensor, and those of
// PyTorch's `split`.
struct Alias {
  const char* name;
  const char* alias;
};
constexpr Alias kAliases[] = {{"self", "input"},       {"dim", "axis"},
                              {"keepdim", "keepdims"}, {"self", "x"},
                              {"self", "a"},           {"self", "x1"},
                              {"input", "x"},          {"other", "x2"},
                              {"self", "tensor"},      {"split_size", "split_size_or_sections"}};

void intern_names(Function& function) {
  size_t total = 0;
  for (int s = 0; s < function.count; ++s) total += function.signatures[s].count;
  auto* names = new PyObject*[total + 1];  // kept for the life of the process
  size_t at = 0;
  for (int s = 0; s < function.count; ++s) {
    const Signature& signature = function.signatures[s];
    for (int p = 0; p < signature.count; ++p) {
      names[at++] = Object(PyUnicode_InternFromString(signature.params[p].name)).release();
    }
  }
  function.names = names;
}

bool is_alias(const char* parameter, PyObject* given) {
  for (const Alias& a : kAliases) {
    if (std::strcmp(a.name, parameter) == 0 &&
        PyUnicode_CompareWithASCIIString(given, a.alias) == 0)
      return true;
  }
  return false;
}

// -1 when the signature has no such parameter.
int find_parameter(const Signature& signature, PyObject* const* names, PyObject* given) {
  for (int p = 0; p < signature.count; ++p) {
    if (names[p] == given) return p;
  }
  for (int p = 0; p < signature.count; ++p) {
    if (PyUnicode_Compare(names[p], given) == 0) return p;
  }
  for (int p = 0; p < signature.count; ++p) {
    if (is_alias(signature.params[p].name, given)) return p;
  }
  return -1;
}

// A 0-dim tensor of integers, which counts as an int where the second pass allows it.
bool is_int_tensor(PyObject* o) {
  if (!is_tensor(o)) return false;
  const Tensor& t = unwrap(o);
  return t.dim() == 0 && is_integral(t.dtype(), false) && !t.is_meta();
}

bool is_list(PyObject* o) { return PyTuple_Check(o) || PyList_Check(o); }

template <class F>
bool all_items(PyObject* o, F&& is) {
  if (!is_list(o)) return false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (!is(PySequence_Fast_GET_ITEM(o, i))) return false;
  }
  return true;
}

bool is_int_like(PyObject* o) { return is_int(o) || is_int_tensor(o); }

// An object that is no exact Tensor: one of another class, which may have overrides, or a number.
[[gnu::noinline]] bool fits_tensor(const Param& param, PyObject* o, bool lenient,
                                   const Arguments& arguments) {
  // Never for `out` and other tensors that are given by name only.
  const bool number_fits = lenient && !(param.flags & (kKeyword | kTensorOnly));
  if (PyFloat_CheckExact(o) || PyLong_CheckExact(o)) return number_fits;
  if (!is_tensor(o)) return number_fits && is_number(o);
  if (class_overrides(Py_TYPE(o))) arguments.overriding_class = true;
  return true;
}
[[gnu::always_inline]] inline bool is_tensor_of(PyObject* o, const Arguments& arguments) {
  return is_exact_tensor(o) || fits_tensor({"", Kind::Tensor}, o, false, arguments);
}

bool fits(const Param& param, PyObject* o, bool lenient, const Arguments& arguments) {
  if (o == Py_None) return param.flags & kNullable || param.kind == Kind::Any;
  switch (param.kind) {
    case Kind::Tensor:
      return is_exact_tensor(o) || fits_tensor(param, o, lenient, arguments);
    case Kind::TensorList:
      return all_items(o, [&](PyObject* i) {
        return is_tensor_of(i, arguments) || ((param.flags & kNullableItems) && i == Py_None);
      });
    case Kind::Int:
      return is_int(o) || (lenient && is_int_tensor(o));
    case Kind::IntList:
      return all_items(o, is_int_like) || (param.length > 0 && is_int_like(o));
    case Kind::Float:
      return is_real(o) || (lenient && is_tensor(o) && is_number_tensor(unwrap(o)));
    case Kind::FloatList:
      return all_items(o, is_real);
    case Kind::Bool:
      return is_bool(o);
    case Kind::BoolList:
      return all_items(o, is_bool) &&
             (param.length == 0 || PySequence_Fast_GET_SIZE(o) == param.length);
    case Kind::Number:
      return is_number(o) || (lenient && is_tensor(o) && is_number_tensor(unwrap(o)));
    case Kind::Str:
      return PyUnicode_Check(o);
    case Kind::Dtype:
      return as_dtype(o).has_value();
    case Kind::Layout:
      return Py_IS_TYPE(o, layout_type);
    case Kind::Device:
      return is_device(o);
    case Kind::MemoryFormat:
      return Py_IS_TYPE(o, memory_format_type);
    case Kind::Generator:
      return is_generator(o);
    case Kind::Any:
      return true;
    case Kind::NumberList:
      return all_items(o, is_number);
  }
  return false;
}

// Why a signature did not fit; the text is only made for the message.
struct Mismatch {
  enum { None, TooMany, Unknown, Twice, Missing, WrongKind } what = None;
  const Param* param = nullptr;
  PyObject* value = nullptr;
};

Mismatch match(const Signature& signature, PyObject* const* names, const Arguments& arguments,
               PyObject** slots, bool lenient) {
  const int self = arguments.object ? signature.self : -1;
  if (arguments.object ? self < 0 : !signature.function) return {Mismatch::TooMany};
  const Py_ssize_t places = signature.positional - (self >= 0);
  for (int p = 0; p < signature.count; ++p) slots[p] = nullptr;
  if (self >= 0) {
    slots[self] = arguments.object;
    is_tensor_of(arguments.object, arguments);
  }

  const int first = self == 0 ? 1 : 0;
  const bool may_spread = places == 1 && signature.params[first].kind == Kind::IntList;
  Py_ssize_t given = arguments.count;
  if (may_spread && given >= 1 && (given > 1 || !is_list(arguments.values[0])) &&
      arguments.values[0] != Py_None) {
    for (Py_ssize_t i = 0; i < given; ++i) {
      if (!is_int_like(arguments.values[i]))
        return {Mismatch::WrongKind, &signature.params[first], arguments.values[i]};
    }
    slots[first] = spread();
    given = 0;
  }
  if (given > places) return {Mismatch::TooMany};
  for (Py_ssize_t i = 0, p = 0; i < given; ++i, ++p) {
    if (p == self) ++p;
    if (!fits(signature.params[p], arguments.values[i], lenient, arguments)) {
      return {Mismatch::WrongKind, &signature.params[p], arguments.values[i]};
    }
    slots[p] = arguments.values[i];
  }
  if (arguments.names) {
    const Py_ssize_t n = PyTuple_GET_SIZE(arguments.names);
    for (Py_ssize_t k = 0; k < n; ++k) {
      PyObject* name = PyTuple_GET_ITEM(arguments.names, k);
      PyObject* value = arguments.values[arguments.count + k];
      const int p = find_parameter(signature, names, name);
      if (p < 0) return {Mismatch::Unknown, nullptr, name};
      if (slots[p]) return {Mismatch::Twice, &signature.params[p]};
      if (!fits(signature.params[p], value, lenient, arguments))
        return {Mismatch::WrongKind, &signature.params[p], value};
      slots[p] = value;
    }
  }
  for (int p = 0; p < signature.count; ++p) {
    if (!slots[p] && !(signature.params[p].flags & kDefault))
      return {Mismatch::Missing, &signature.params[p]};
  }
  return {};
}

const char* kind_text(Kind kind) {
  static constexpr const char* kTexts[] = {
      "Tensor", "Tensor[]",      "int",       "int[]",  "float",   "float[]",
      "bool",   "bool[]",        "Number",    "str",    "dtype",   "layout",
      "device", "memory_format", "Generator", "object", "Number[]"};
  return kTexts[static_cast<size_t>(kind)];
}

std::string param_type_text(const Param& param) {
  std::string text = kind_text(param.kind);
  if (param.length > 0) text.insert(text.size() - 1, std::to_string(int{param.length}));
  return param.flags & kNullable ? text + "?" : text;
}

const char* param_name(const Param& param) {
  return std::strcmp(param.name, "self") == 0 ? "input" : param.name;
}

std::string signature_text(const char* name, const Signature& signature, bool method) {
  std::string text = std::string(name) + "(";
  bool first = true, keywords = false;
  for (int p = 0; p < signature.count; ++p) {
    const Param& param = signature.params[p];
    if (method && p == signature.self) continue;
    if (!first) text += ", ";
    first = false;
    if ((param.flags & kKeyword) && !keywords) {
      keywords = true;
      text += "*, ";
    }
    text += param_type_text(param) + " " + param_name(param);
    if (*param.default_text) text += std::string("=") + param.default_text;
  }
  return text + ")";
}

std::string given_text(const Arguments& arguments) {
  std::string text = "(";
  for (Py_ssize_t i = 0; i < arguments.count; ++i) {
    if (i) text += ", ";
    text += type_text(arguments.values[i]);
  }
  const Py_ssize_t named = arguments.names ? PyTuple_GET_SIZE(arguments.names) : 0;
  for (Py_ssize_t k = 0; k < named; ++k) {
    if (text.size() > 1) text += ", ";
    text += std::string(utf8(PyTuple_GET_ITEM(arguments.names, k))) + "=" +
            type_text(arguments.values[arguments.count + k]);
  }
  text += ")";
  return text.size() > 300 ? text.substr(0, 300) + "..." : text;
}

std::string reason_text(const Mismatch& mismatch) {
  switch (mismatch.what) {
    case Mismatch::None:
      break;
    case Mismatch::TooMany:
      return "too many arguments by position";
    case Mismatch::Unknown:
      return str("unexpected argument '", utf8(mismatch.value), "'");
    case Mismatch::Twice:
      return str("argument '", param_name(*mismatch.param), "' given twice");
    case Mismatch::Missing:
      return str("argument '", param_name(*mismatch.param), "' missing");
    case Mismatch::WrongKind:
      return str("argument '", param_name(*mismatch.param), "' must be ",
                 param_type_text(*mismatch.param), ", not ", type_text(mismatch.value));
  }
  return "";
}

std::string no_signature_text(const Function& function, const Arguments& arguments,
                              PyObject** slots) {
  const bool method = arguments.object != nullptr;
  std::vector<const Signature*> shown;
  const Mismatch* reason = nullptr;
  Mismatch mismatch;
  size_t at = 0;
  for (int s = 0; s < function.count; ++s) {
    const Signature& signature = function.signatures[s];
    if (method ? signature.self >= 0 : signature.function) {
      shown.push_back(&signature);
      mismatch = match(signature, function.names + at, arguments, slots, true);
      reason = &mismatch;
    }
    at += signature.count;
  }
  std::string message = "expected ";
  if (shown.size() == 1) {
    message += signature_text(function.name, *shown[0], method) + "\ngot " + given_text(arguments);
    if (reason) message += ": " + reason_text(*reason);
  } else {
    message += "one of:\n";
    for (size_t s = 0; s < shown.size() && s < 4; ++s) {
      if (s == 3 && shown.size() > 4) {
        message += str("  and ", shown.size() - 3, " more\n");
        break;
      }
      message += "  " + signature_text(function.name, *shown[s], method) + "\n";
    }
    message += "got " + given_text(arguments);
  }
  return message;
}

[[gnu::cold, gnu::noinline]] Error no_signature_fits(const Function& function,
                                                     const Arguments& arguments, PyObject** slots) {
  const auto write = [&](std::string& out) { out = no_signature_text(function, arguments, slots); };
  const std::string called = str(function.name, "()");
  return Error(ErrorKind::Type, OpName(called), treadle::detail::LateText(write));
}

// Old programs give numbers that are keywords now by position, before the tensors that they go
// with: x.add_(2, y) and add(x, 2, y) for alpha = 2, x.addmm(beta, alpha, a, b) and addmm(beta, x,
// alpha, a, b). Whether the call is such a one.
bool fits_older_order(const Signature& signature, PyObject* const* names,
                      const Arguments& arguments, PyObject** slots) {
  constexpr size_t kMax = 8;
  PyObject *values[kMax], *keywords[kMax];
  size_t tensors = 0, numbers = 0;
  const Py_ssize_t named = arguments.names ? PyTuple_GET_SIZE(arguments.names) : 0;
  if (static_cast<size_t>(arguments.count + named) > kMax) return false;
  for (Py_ssize_t i = 0; i < arguments.count; ++i) {
    PyObject* const value = arguments.values[i];
    if (!is_tensor(value) && !is_number(value)) return false;
    if (is_tensor(value)) values[tensors++] = value;
  }
  size_t possible = 0;
  for (int p = signature.positional; p < signature.count; ++p) {
    if (signature.params[p].kind == Kind::Number && possible < kMax)
      keywords[possible++] = names[p];
  }
  size_t next = tensors;
  for (Py_ssize_t i = 0; i < arguments.count; ++i) {
    if (is_tensor(arguments.values[i])) continue;
    const size_t place = arguments.object ? numbers : possible == 1 ? 1 : 2 * numbers;
    if (numbers == possible || static_cast<size_t>(i) != place) return false;
    ++numbers;
    values[next++] = arguments.values[i];
  }
  if (numbers == 0) return false;
  Object all_names(PyTuple_New(static_cast<Py_ssize_t>(numbers) + named));
  if (!all_names.get()) throw PythonError{};
  for (Py_ssize_t k = 0; k < static_cast<Py_ssize_t>(numbers) + named; ++k) {
    const Py_ssize_t given = k - static_cast<Py_ssize_t>(numbers);
    PyObject* const name = given < 0 ? keywords[k] : PyTuple_GET_ITEM(arguments.names, given);
    if (given >= 0) values[next++] = arguments.values[arguments.count + given];
    Py_INCREF(name);
    PyTuple_SET_ITEM(all_names.get(), k, name);
  }
  const Arguments reordered{arguments.object, values, static_cast<Py_ssize_t>(tensors),
                            all_names.get()};
  const bool fits = match(signature, names, reordered, slots, false).what == Mismatch::None;
  arguments.overriding_class = arguments.overriding_class || reordered.overriding_class;
  return fits;
}

bool any_tensor(const Arguments& arguments) {
  if (arguments.object) return true;
  const Py_ssize_t n = arguments.count + (arguments.names ? PyTuple_GET_SIZE(arguments.names) : 0);
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (is_tensor(arguments.values[i])) return true;
  }
  return false;
}

}  // namespace

PyObject* spread() {
  static PyObject marker{};
  return &marker;
}

int parse(Function& function, const Arguments& arguments, PyObject** slots) {
  if (!function.names) [[unlikely]]
    intern_names(function);
  for (const bool lenient : {false, true}) {
    // A number can stand for a tensor only beside a real one.
    if (lenient && !any_tensor(arguments)) break;
    size_t at = 0;
    for (int s = 0; s < function.count; ++s) {
      const Signature& signature = function.signatures[s];
      if (match(signature, function.names + at, arguments, slots, lenient).what == Mismatch::None) {
        const bool overridden = arguments.overriding_class || any_override_mode();
        if (overridden && take_over(function, arguments, slots)) [[unlikely]]
          return kOverridden;
        return s;
      }
      at += signature.count;
    }
  }
  size_t at = 0;
  for (int s = 0; s < function.count; ++s) {
    const Signature& signature = function.signatures[s];
    if (fits_older_order(signature, function.names + at, arguments, slots)) {
      if (PyErr_WarnFormat(PyExc_UserWarning, 1,
                           "%s: numbers by position before the tensors are deprecated; give them "
                           "as keywords",
                           function.name) < 0)
        throw PythonError{};
      const bool overridden = arguments.overriding_class || any_override_mode();
      return overridden && take_over(function, arguments, slots) ? kOverridden : s;
    }
    at += signature.count;
  }
  // Objects that are no tensors, but stand for them.
  if (take_over(function, arguments, slots)) return kOverridden;
  throw no_signature_fits(function, arguments, slots);
}

namespace {

// Reading an item may run Python code, which may change the list. So each item is held, and the
// length is read every time.
template <class F>
void each_item(const char* op, PyObject* list, F&& read) {
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(list);
  for (Py_ssize_t i = 0; i < n; ++i) {
    check<ErrorKind::Runtime>(i < PySequence_Fast_GET_SIZE(list), OpName(op),
                              "expected a list that stays as it is while it is read");
    const Object item = Object::borrow(PySequence_Fast_GET_ITEM(list, i));
    read(static_cast<size_t>(i), item.get());
  }
}

}  // namespace

void read_ints(const char* op, PyObject* o, int length, DimVector& out) {
  if (!is_list(o)) {
    const int64_t value = to_int(op, o);
    for (int i = 0; i < (length > 0 ? length : 1); ++i) out.push_back(value);
    return;
  }
  each_item(op, o, [&](size_t, PyObject* item) { out.push_back(to_int(op, item)); });
  // A list of one value, as a single value, stands for all of int[2].
  if (length > 1 && out.size() == 1) {
    for (int i = 1; i < length; ++i) out.push_back(out[0]);
  }
}

void read_spread(const char* op, const Arguments& arguments, DimVector& out) {
  for (Py_ssize_t i = 0; i < arguments.count; ++i) out.push_back(to_int(op, arguments.values[i]));
}

std::vector<Tensor> read_tensors(const char* op, PyObject* o) {
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(o);
  std::vector<Tensor> out;
  out.reserve(static_cast<size_t>(count));
  // No Python code runs between the items, so they need not be held one by one.
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const item = PySequence_Fast_GET_ITEM(o, i);
    if (item == Py_None) {
      out.emplace_back();
    } else if (is_tensor(item)) {
      out.push_back(unwrap(item));
    } else {
      fail<ErrorKind::Type>(OpName(op), "expected a list of tensors, got ", type_text(item),
                            " in it");
    }
  }
  return out;
}

std::vector<double> read_doubles(const char* op, PyObject* o) {
  std::vector<double> out;
  each_item(op, o, [&](size_t, PyObject* item) { out.push_back(to_double(op, item)); });
  return out;
}

std::vector<Scalar> read_scalars(const char* op, PyObject* o) {
  std::vector<Scalar> out;
  each_item(op, o, [&](size_t, PyObject* item) { out.push_back(to_scalar(op, item)); });
  return out;
}

void warn_of_bytes(const char* op) {
  const std::string text = str(op, ": a mask of dtype uint8 is deprecated; use one of dtype bool");
  checked(PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1));
}

Tensor mask_of_bytes(const char* op, const Tensor& bytes) {
  warn_of_bytes(op);
  return run([&] { return aten::to(bytes, ScalarType::Bool); }, bytes.device());
}

void read_bools(const char* op, PyObject* o, bool* out, size_t length) {
  check<ErrorKind::Type>(static_cast<size_t>(PySequence_Fast_GET_SIZE(o)) == length, OpName(op),
                         "expected ", length, " bools");
  each_item(op, o, [&](size_t i, PyObject* item) { out[i] = to_boolean(item); });
}

}  // namespace treadle::python::detail
