// The number protocol of Tensor: a + b, a < b, -a, a += b, float(a).
//
// Each symbol of the language names an operator. The call itself is that operator's generated
// binding. An operand that is neither a tensor, a number nor a NumPy array gives NotImplemented, so
// that Python can try the other operand.
//
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/dispatch/overrides.h"

namespace treadle::python {
namespace {

// A symbol, the operator behind it, and whether `2 - a` may be computed as `a - 2` is.
struct Symbol {
  const char* name;
  const char* inplace;
  bool commutes;
  // The name of the call for overrides, if it is not the operator's name: for `a // 2`, `a //= 2`
  // and `2 // a`.
  const char* shown = nullptr;
  const char* shown_inplace = nullptr;
  const char* shown_reflected = nullptr;
};
constexpr std::array kBinary = {
    Symbol{"add", "add_", true},
    Symbol{"sub", "sub_", false, nullptr, nullptr, "__rsub__"},
    Symbol{"mul", "mul_", true},
    Symbol{"div", "div_", false, nullptr, nullptr, "__rtruediv__"},
    Symbol{"floor_divide", "floor_divide_", false, "__floordiv__", nullptr, "__rfloordiv__"},
    Symbol{"remainder", "remainder_", false, nullptr, nullptr, "__rmod__"},
    Symbol{"pow", "pow_", false, nullptr, nullptr, "__rpow__"},
    Symbol{"matmul", "", false, nullptr, nullptr, "__rmatmul__"},
    Symbol{"bitwise_and", "bitwise_and_", true, "__and__", "__iand__"},
    Symbol{"bitwise_or", "bitwise_or_", true, "__or__", "__ior__"},
    Symbol{"bitwise_xor", "bitwise_xor_", true, "__xor__", "__ixor__"},
    Symbol{"bitwise_left_shift", "bitwise_left_shift_", false, "__lshift__", "__ilshift__",
           "__rlshift__"},
    Symbol{"bitwise_right_shift", "bitwise_right_shift_", false, "__rshift__", "__irshift__",
           "__rrshift__"},
};
constexpr std::array kUnary = {"neg", "abs", "bitwise_not"};
constexpr std::array kCompare = {"lt", "le", "eq", "ne", "gt", "ge"};  // as Py_LT ... Py_GE count
static_assert(Py_LT == 0 && Py_LE == 1 && Py_EQ == 2 && Py_NE == 3 && Py_GT == 4 && Py_GE == 5);

std::array<Binding, kBinary.size()> binary_bindings{};
std::array<Binding, kBinary.size()> inplace_bindings{};
std::array<Binding, kUnary.size()> unary_bindings{};
std::array<Binding, kCompare.size()> compare_bindings{};

PyObject* not_implemented() { return new_ref(Py_NotImplemented); }

// The operand itself, or for a NumPy array the tensor over it; null if the object is no operand.
Object operand(PyObject* o) {
  if (is_tensor(o) || is_number(o)) return Object::borrow(o);
  if (is_numpy_array(o)) return Object(wrap(operand_tensor("operator", o)));
  return Object();
}

// Whether overrides are to be called for an operator on these.
bool operator_overridden(PyObject* a, PyObject* b) {
  if (any_override_mode()) return true;
  return (!is_exact_tensor(a) && has_override(a)) || (!is_exact_tensor(b) && has_override(b));
}
PyObject* call_operator_elsewhere(const char* shown, PyObject* a, PyObject* b = nullptr) {
  return guarded([&] { return call_override_of_method(a, shown, b); });
}

PyObject* call_binary(const Binding& binding, bool commutes, const char* shown_reflected,
                      PyObject* a, PyObject* b) {
  if (!binding.method) return not_implemented();
  if (is_tensor(a)) [[likely]] {
    if (is_exact_tensor(b) || is_number(b) || is_tensor(b)) [[likely]]
      return binding.method(a, &b, 1, nullptr);
  } else if (commutes && is_number(a)) {
    return binding.method(b, &a, 1, nullptr);
  }
  return guarded([&]() -> PyObject* {
    if (operator_overridden(a, b)) {
      if (is_tensor(a)) return binding.method(a, &b, 1, nullptr);
      return commutes ? binding.method(b, &a, 1, nullptr)
                      : call_override_of_method(b, shown_reflected, a);
    }
    Object left = operand(a), right = operand(b);
    if (!left || !right) return not_implemented();
    PyObject* both[] = {left.get(), right.get()};
    if (binding.function) return binding.function(nullptr, both, 2, nullptr);
    // 2 ** a where the operator is a method alone
    Object tensor(wrap(operand_tensor(binding.name, left.get())));
    return binding.method(tensor.get(), both + 1, 1, nullptr);
  });
}

template <size_t I>
PyObject* binary(PyObject* a, PyObject* b) {
  constexpr Symbol symbol = kBinary[I];
  if constexpr (symbol.shown != nullptr) {
    if (is_tensor(a) && operator_overridden(a, b)) [[unlikely]]
      return call_operator_elsewhere(symbol.shown, a, b);
  }
  return call_binary(binary_bindings[I], symbol.commutes, symbol.shown_reflected, a, b);
}
template <size_t I>
PyObject* inplace(PyObject* a, PyObject* b) {
  constexpr Symbol symbol = kBinary[I];
  if constexpr (symbol.shown_inplace != nullptr) {
    if (operator_overridden(a, b)) [[unlikely]]
      return call_operator_elsewhere(symbol.shown_inplace, a, b);
  }
  return call_binary(inplace_bindings[I], false, nullptr, a, b);
}
template <size_t I>
PyObject* unary(PyObject* a) {
  if constexpr (kUnary[I] == std::string_view("bitwise_not")) {
    if (overridden(a)) [[unlikely]]
      return call_operator_elsewhere("__invert__", a);
  }
  return unary_bindings[I].method ? unary_bindings[I].method(a, nullptr, 0, nullptr)
                                  : not_implemented();
}

template <PyObject* (*f)(PyObject*, PyObject*)>
PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) return not_implemented();
  return f(a, b);
}

PyObject* positive(PyObject* a) { return new_ref(a); }

PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (op == Py_EQ && operator_overridden(a, b)) [[unlikely]]
    return call_operator_elsewhere("__eq__", a, b);
  return call_binary(compare_bindings[static_cast<size_t>(op)], false, nullptr, a, b);
}

int truth(PyObject* self) {
  return guarded([&]() -> int {
    const Tensor& t = unwrap(self);
    check<ErrorKind::Runtime>(
        t.numel() == 1, OpName("bool"),
        "expected a tensor with one element, whose truth is not ambiguous, got ", t);
    return element("bool", t).to<bool>();
  });
}

// An integer or a truth value as an int.
PyObject* python_int(const Scalar& value) {
  return value.kind() == Scalar::Kind::Bool ? wrap(value.to<int64_t>()) : wrap(value);
}
void require_one_element(const char* op, const Tensor& t) {
  check<ErrorKind::Value>(t.numel() == 1, OpName(op), "expected a tensor with one element, got ",
                          t);
}
PyObject* to_python_int(PyObject* self) {
  return guarded([&] {
    require_one_element("int", unwrap(self));
    const Scalar value = element("int", unwrap(self));
    check<ErrorKind::Type>(!value.is_complex(), OpName("int"),
                           "expected a real tensor, got a complex one");
    if (value.is_floating()) return Object(PyLong_FromDouble(value.to<double>())).release();
    return python_int(value);
  });
}
PyObject* to_python_float(PyObject* self) {
  return guarded([&] {
    require_one_element("float", unwrap(self));
    return wrap(to_double("float", self));
  });
}
PyObject* to_index(PyObject* self) {
  return guarded([&] {
    const Tensor& t = unwrap(self);
    check<ErrorKind::Type>(is_integral(t.dtype(), true) && t.numel() == 1, OpName("index"),
                           "expected an integer tensor of one element, got ", t);
    return python_int(element("index", t));
  });
}

}  // namespace

void add_number_slots(std::vector<PyType_Slot>& slots) {
  for (size_t i = 0; i < kBinary.size(); ++i) {
    binary_bindings[i] = find_binding(kBinary[i].name);
    inplace_bindings[i] = find_binding(kBinary[i].inplace);
  }
  for (size_t i = 0; i < kUnary.size(); ++i) unary_bindings[i] = find_binding(kUnary[i]);
  for (size_t i = 0; i < kCompare.size(); ++i) compare_bindings[i] = find_binding(kCompare[i]);

  const PyType_Slot numbers[] = {
      {Py_nb_add, slot(&binary<0>)},
      {Py_nb_subtract, slot(&binary<1>)},
      {Py_nb_multiply, slot(&binary<2>)},
      {Py_nb_true_divide, slot(&binary<3>)},
      {Py_nb_floor_divide, slot(&binary<4>)},
      {Py_nb_remainder, slot(&binary<5>)},
      {Py_nb_power, slot(&power<&binary<6>>)},
      {Py_nb_matrix_multiply, slot(&binary<7>)},
      {Py_nb_and, slot(&binary<8>)},
      {Py_nb_or, slot(&binary<9>)},
      {Py_nb_xor, slot(&binary<10>)},
      {Py_nb_lshift, slot(&binary<11>)},
      {Py_nb_rshift, slot(&binary<12>)},
      {Py_nb_inplace_add, slot(&inplace<0>)},
      {Py_nb_inplace_subtract, slot(&inplace<1>)},
      {Py_nb_inplace_multiply, slot(&inplace<2>)},
      {Py_nb_inplace_true_divide, slot(&inplace<3>)},
      {Py_nb_inplace_floor_divide, slot(&inplace<4>)},
      {Py_nb_inplace_remainder, slot(&inplace<5>)},
      {Py_nb_inplace_power, slot(&power<&inplace<6>>)},
      {Py_nb_inplace_and, slot(&inplace<8>)},
      {Py_nb_inplace_or, slot(&inplace<9>)},
      {Py_nb_inplace_xor, slot(&inplace<10>)},
      {Py_nb_inplace_lshift, slot(&inplace<11>)},
      {Py_nb_inplace_rshift, slot(&inplace<12>)},
      {Py_nb_negative, slot(&unary<0>)},
      {Py_nb_absolute, slot(&unary<1>)},
      {Py_nb_invert, slot(&unary<2>)},
      {Py_nb_positive, slot(&positive)},
      {Py_nb_bool, slot(&overridable_slot<"__bool__", &truth, kTruth>)},
      {Py_nb_int, slot(&overridable_slot<"__int__", &to_python_int, kAnyObject>)},
      {Py_nb_float, slot(&overridable_slot<"__float__", &to_python_float, kAnyObject>)},
      {Py_nb_index, slot(&overridable_slot<"__index__", &to_index, kAnyObject>)},
      {Py_tp_richcompare, slot(&compare)},
  };
  slots.insert(slots.end(), std::begin(numbers), std::end(numbers));
}

}  // namespace treadle::python
