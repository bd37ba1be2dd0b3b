// Layouts and dtypes of Python programs, for treadle.library: their checks, kernels, rules and
// conversions are Python functions.
//
// A registration lasts for as long as the program, so the functions do, too.
//
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "aten/engine/layouts.h"
#include "aten/engine/stored_types.h"
#include "aten/ops/contiguous.h"
#include "core/base/outside_dtypes.h"
#include "core/dispatch/dispatcher.h"
#include "python_bindings/csrc/arguments/casters.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/autograd/node_object.h"
#include "python_bindings/csrc/library/defined_operator.h"
#include "python_bindings/csrc/module.h"

namespace py = pybind11;

namespace treadle::python {
namespace {

PyObject* kept(const py::function& function) { return new_ref(function.ptr()); }

Layout layout_of(const py::handle& layout) {
  check<ErrorKind::Type>(Py_IS_TYPE(layout.ptr(), layout_type), OpName("register_layout"),
                         "expected a layout, got ", type_text(layout.ptr()));
  return reinterpret_cast<LayoutObject*>(layout.ptr())->value;
}

// ---- layouts ----

py::object new_layout(const std::string& name, const std::vector<std::string>& parts,
                      const std::vector<std::string>& fields, size_t values,
                      const py::function& check_contents) {
  check_internal(values < parts.size(), "a part of values");
  const Layout layout = register_layout(name);
  auto* const info = new LayoutInfo{parts, fields, values, {}};
  info->check = [function = kept(check_contents)](const char*, IntList sizes,
                                                  const LayoutContents& contents) {
    in_python([&] {
      const Object size(wrap_size(sizes));
      const py::object parts = py::cast(contents.parts), fields = py::cast(contents.fields);
      Object(call_python(PyObject_CallFunctionObjArgs, function, size.get(), parts.ptr(),
                         fields.ptr(), nullptr));
    });
  };
  describe_layout(layout, *info);
  register_copies(layout);
  return py::reinterpret_steal<py::object>(wrap(layout));
}

struct LayoutKernel {
  Operator& op;
  PyObject* function;
};
void run_kernel(void* context, const Operator&, Stack& stack) {
  in_python([&] {
    const auto& kernel = *static_cast<const LayoutKernel*>(context);
    LibraryOperator& library = LibraryOperator::of(kernel.op);
    library.with_objects(stack,
                         [&](Slots slots) { return library.invoke(kernel.function, slots); });
  });
}

void set_layout_kernel(const std::string& name, const py::handle& layout,
                       const py::function& function, const std::string& file, int line) {
  Operator& op = Dispatcher::instance().at(name);
  check<ErrorKind::Runtime>(op.has_table() && op.entry().op == &op, OpName(name),
                            "expected an operator's first form, ", op.entry().op->info().name,
                            ", for a kernel of a layout; the other forms are made of it");
  auto kernel = std::make_unique<LayoutKernel>(LayoutKernel{op, function.ptr()});
  Dispatcher::instance().register_layout(op, layout_of(layout), {&run_kernel, kernel.get()},
                                         {KernelSource::DeviceLayout, file.c_str(), line, ""});
  kept(function);
  kernel.release();
}

// function(operator, args, kwargs) gives results, or NotImplemented.
LayoutRule rule_of(const py::function& function, const std::string& who) {
  return [function = kept(function), who](const Operator& op, Stack& stack) {
    return in_python([&] {
      LibraryOperator& library = LibraryOperator::of(const_cast<Operator&>(op));
      const LibraryOperator::Shown& shown = library.shown();
      const size_t first = stack.size() - library.schema().arguments.size();
      const Stack given(stack.begin() + static_cast<std::ptrdiff_t>(first), stack.end());
      const Stack arguments = shown.op->arguments_of(library, given);
      const LibraryOperator::PythonCall call = shown.op->python_call(arguments);
      const Object result(call_python(PyObject_CallFunctionObjArgs, function, shown.overload.get(),
                                      call.args.get(), call.kwargs.get(), nullptr));
      if (result.get() == Py_NotImplemented) return false;
      treadle::detail::replace_arguments(
          stack, first, shown.op->results_of(result.get(), arguments, who.c_str()));
      return true;
    });
  };
}
void set_rule(const py::handle& layout, const py::function& function) {
  const Layout of = layout_of(layout);
  set_layout_rule(of, rule_of(function, str("the rule of the layout ", name_of(of))));
}
void set_fallback_of(const py::handle& layout, const py::function& function) {
  const Layout of = layout_of(layout);
  set_layout_fallback(of, rule_of(function, str("the fallback of the layout ", name_of(of))));
}

py::object layout_named(const std::string& name) {
  for (int i = 0; i < num_layouts(); ++i) {
    const auto layout = static_cast<Layout>(i);
    if (name_of(layout) == name) return py::reinterpret_steal<py::object>(wrap(layout));
  }
  return py::none();
}

// (names of the parts, names of the fields, the part of values), or None for strided.
py::object names_of(const py::handle& layout) {
  const Layout of = layout_of(layout);
  if (of == Layout::Strided || of == Layout::Jagged) return py::none();
  const LayoutInfo& info = info_of(of);
  return py::make_tuple(info.parts, info.fields, info.values);
}

// ---- dtypes ----

// Calls a conversion in Python with a tensor of one dimension, and copies its result.
void convert(PyObject* function, const std::string& what, ScalarType from, const void* source,
             ScalarType to, void* target, int64_t count) {
  in_python([&] {
    const ExcludeLayers unrecorded(Layer::Autograd);
    const Tensor given = empty_cpu({count}, from);
    const auto bytes = static_cast<size_t>(count * item_size(from));
    if (count > 0) std::memcpy(given.data(), source, bytes);
    const Object argument(wrap(given));
    const Object result(call_python(PyObject_CallOneArg, function, argument.get()));
    const auto wrong = [&](const auto&... got) {
      fail<ErrorKind::Runtime>(OpName(what), "expected a conversion to a ", name_of(to),
                               " tensor of shape (", count, ",), got ", got...);
    };
    if (!is_tensor(result.get())) wrong(type_text(result.get()));
    const Tensor converted = unwrap(result.get());
    if (converted.dtype() != to || converted.sizes() != IntList(given.sizes()) ||
        !converted.is_strided() || !converted.is_cpu())
      wrong("a ", name_of(converted.dtype()), " tensor of shape ", converted.sizes(), " on ",
            converted.device());
    if (count > 0)
      std::memcpy(target, aten::contiguous(converted).data(),
                  static_cast<size_t>(count * item_size(to)));
  });
}

ScalarType new_dtype(const std::string& name, int64_t size, ScalarType computed,
                     const py::function& from_bits, const py::function& to_bits) {
  OutsideDtype dtype;
  dtype.computed = computed;
  dtype.in_parallel = false;
  // As carrier_type() says of the dtype, which has no number yet.
  const ScalarType carrier = size == 1   ? ScalarType::UInt8
                             : size == 2 ? ScalarType::Int16
                             : size == 4 ? ScalarType::Int32
                                         : ScalarType::Int64;
  dtype.widen = [=, function = kept(from_bits), what = name + ".from_bits"](
                    const void* elements, void* values, int64_t count) {
    convert(function, what, carrier, elements, computed, values, count);
  };
  dtype.narrow = [=, function = kept(to_bits), what = name + ".to_bits"](
                     const void* values, void* elements, int64_t count) {
    convert(function, what, computed, values, carrier, elements, count);
  };
  return register_dtype(name, size, std::move(dtype));
}

py::object dtype_named(const std::string& name) {
  const std::optional<ScalarType> found = outside_dtype_named(name);
  return found ? py::cast(*found) : py::none();
}

}  // namespace

void init_outside(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  m.def("_library_new_layout", &new_layout, py::arg("name"), py::arg("parts"), py::arg("fields"),
        py::arg("values"), py::arg("check"), "Registers a layout; gives it.");
  m.def("_library_set_layout_kernel", &set_layout_kernel);
  m.def("_library_set_layout_rule", &set_rule);
  m.def("_library_set_layout_fallback", &set_fallback_of);
  m.def("_library_layout_named", &layout_named, "A layout by its name, or None.");
  m.def("_library_layout_names", &names_of, "The names of a layout's parts and fields.");
  m.def("_library_new_dtype", &new_dtype, py::arg("name"), py::arg("itemsize"), py::arg("computed"),
        py::arg("from_bits"), py::arg("to_bits"), "Registers a dtype; gives it.");
  m.def("_library_dtype_named", &dtype_named, "A registered dtype by its name, or None.");
  m.def("_library_computed_dtype", &computed_type, py::arg("dtype"),
        "The dtype in which operators compute a dtype that is stored only; of others itself.");
}

}  // namespace treadle::python
