// Collects the generated bindings into the type Tensor and the module's parts, and wraps their
// results.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/binding.h"

#include <structmember.h>

#include <algorithm>
#include <map>
#include <set>

#include "python_bindings/csrc/dispatch/overrides.h"
#include "python_bindings/csrc/package_name.h"

namespace treadle::python {
namespace {

constexpr int kFlags = METH_FASTCALL | METH_KEYWORDS;

PyMethodDef definition(const Binding& binding, BindingFunction function) {
  return {binding.name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function)), kFlags,
          binding.doc};
}

template <class F>
void each_binding(F&& f) {
  for (size_t s = 0; s < binding_shard_count; ++s) {
    for (size_t i = 0; i < binding_shards[s]->count; ++i) f(binding_shards[s]->bindings[i]);
  }
}

// The additions of outside libraries, and their modules.
struct LibraryBindings {
  const BindingShard* shard;
  PyObject* module;
};
std::vector<LibraryBindings>& libraries() {
  static auto* all = new std::vector<LibraryBindings>();
  return *all;
}

bool holds(const BindingShard& shard, const Function& function) {
  return std::any_of(shard.bindings, shard.bindings + shard.count,
                     [&](const Binding& b) { return b.signatures == &function; });
}

// Lists of names that end with null.
bool same_names(const char* const* a, const char* const* b) {
  for (; *a && *b; ++a, ++b) {
    if (std::string_view(*a) != *b) return false;
  }
  return !*a && !*b;
}

// The text of a result with named parts: a line for each.
PyObject* represent_result(PyObject* self) {
  return guarded([&] {
    const PyTypeObject* type = Py_TYPE(self);
    std::string text = in_words_of_the_program(type->tp_name);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      const Object part(PyObject_Repr(PyTuple_GET_ITEM(self, i)));
      text += str(i == 0 ? "(\n" : ",\n", type->tp_members[i].name, "=", utf8(part.get()));
    }
    return unicode(text + ")").release();
  });
}

PyObject* return_types(PyObject*, PyObject*) {
  return guarded([] { return NamedResult::all_types(); });
}
PyObject* private_operators(PyObject*, PyObject*) {
  return guarded([] {
    std::set<std::string_view> names;
    each_binding([&](const Binding& b) {
      if (b.function && *b.module == 0 && b.name[0] == '_') names.insert(b.name);
    });
    Object list(PyList_New(0));
    for (const std::string_view name : names) PyList_Append(list.get(), unicode(name).get());
    return list.release();
  });
}
PyMethodDef module_methods[] = {
    {"_return_types", return_types, METH_NOARGS, "The types of results with named parts."},
    {"_private_operators", private_operators, METH_NOARGS,
     "The names of operators that begin with an underscore."},
    {}};

}  // namespace

const Binding& find_binding(std::string_view name) {
  static const Binding none{};
  const Binding* found = &none;
  each_binding([&](const Binding& b) {
    if (name == b.name && (*b.module == 0 || found == &none)) found = &b;
  });
  return *found;
}

Object home_of(const Function& function) {
  for (const LibraryBindings& library : libraries()) {
    if (holds(*library.shard, function)) return Object::borrow(library.module);
  }
  const Object module(PyImport_ImportModule("treadle._C"));
  const Binding* found = nullptr;
  each_binding([&](const Binding& b) {
    if (b.signatures == &function) found = &b;
  });
  if (!found || !*found->module) return module;
  return attribute(module.get(), (std::string("_") + found->module).c_str());
}

const char* resolve_operator(const Binding& binding, PyObject* object, PyObject* args,
                             PyObject* kwargs) {
  std::vector<PyObject*> values;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    values.push_back(PyTuple_GET_ITEM(args, i));
  const Py_ssize_t positional = PyTuple_GET_SIZE(args);
  Object names(PyTuple_New(PyDict_GET_SIZE(kwargs)));
  PyObject *key, *value;
  for (Py_ssize_t position = 0, i = 0; PyDict_Next(kwargs, &position, &key, &value); ++i) {
    PyTuple_SET_ITEM(names.get(), i, new_ref(key));
    values.push_back(value);
  }
  size_t slots = 1;
  for (int s = 0; s < binding.signatures->count; ++s)
    slots = std::max<size_t>(slots, binding.signatures->signatures[s].count);
  std::vector<PyObject*> filled(slots);
  const NoOverrides as_it_is;
  return binding.operators[detail::parse(
      *binding.signatures, {object, values.data(), positional, names.get()}, filled.data())];
}

PyObject* call_operator(const char* name, PyObject* self,
                        std::initializer_list<PyObject*> arguments) {
  Object method(PyUnicode_InternFromString(name));
  std::vector<PyObject*> all = {self};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return Object(
             call_python(PyObject_VectorcallMethod, method.get(), all.data(), all.size(), nullptr))
      .release();
}

void add_generated_methods(std::vector<PyMethodDef>& methods) {
  std::set<std::string_view> taken;
  // A method written by hand over operators is documented by their entries.
  for (PyMethodDef& m : methods) {
    taken.insert(m.ml_name);
    if (const Binding& b = find_binding(m.ml_name); b.method) m.ml_doc = b.doc;
  }
  std::vector<PyGetSetDef> properties;
  add_properties(properties);
  add_autograd_properties(properties);
  for (const PyGetSetDef& p : properties) taken.insert(p.name);
  each_binding([&](const Binding& b) {
    if (b.method && !taken.contains(b.name)) methods.push_back(definition(b, b.method));
  });
}

void add_generated_functions(PyObject* module) {
  checked(PyModule_AddFunctions(module, module_methods));
  static std::map<std::string, std::vector<PyMethodDef>> tables;  // Python keeps pointers into them
  each_binding([&](const Binding& b) {
    if (b.function) tables[b.module].push_back(definition(b, b.function));
  });
  for (auto& [name, table] : tables) {
    table.push_back({});
    if (name.empty()) {
      checked(PyModule_AddFunctions(module, table.data()));
      continue;
    }
    const std::string full = "treadle._C._" + name;
    Object part = Object::borrow(PyImport_AddModule(full.c_str()));
    if (!part) throw PythonError{};
    checked(PyModule_AddFunctions(part.get(), table.data()));
    checked(PyModule_AddObjectRef(module, ("_" + name).c_str(), part.get()));
  }
}

void add_library_functions(PyObject* module, const BindingShard& shard) {
  auto* table = new std::vector<PyMethodDef>();  // Python keeps pointers into it
  for (size_t i = 0; i < shard.count; ++i) {
    const Binding& b = shard.bindings[i];
    if (b.function) table->push_back(definition(b, b.function));
  }
  table->push_back({});
  checked(PyModule_AddFunctions(module, table->data()));
  libraries().push_back({&shard, new_ref(module)});
}

PyObject* wrap(const std::vector<Tensor>& list) {
  Object tuple(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
  for (size_t i = 0; i < list.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), wrap(list[i]));
  return tuple.release();
}

NamedResult* NamedResult::first_ = nullptr;

PyTypeObject* NamedResult::type() {
  if (type_) return type_;
  // Overloads of one name share a type: a pickle names it.
  for (const NamedResult* r = first_; r; r = r->next_) {
    if (r->type_ && std::string_view(r->name_) == name_ && same_names(r->fields_, fields_))
      return type_ = r->type_;
  }
  std::vector<PyStructSequence_Field> fields;
  for (const char* const* f = fields_; *f; ++f) fields.push_back({*f, nullptr});
  const int count = static_cast<int>(fields.size());
  fields.push_back({});
  const bool of_library = std::string_view(name_).find('.') != std::string_view::npos;
  const std::string full = std::string(of_library ? "" : "treadle.return_types.") + name_;
  PyStructSequence_Desc description = {full.c_str(), "A result with named parts.", fields.data(),
                                       count};
  PyTypeObject* const made = PyStructSequence_NewType(&description);
  if (!made) throw PythonError{};
  made->tp_repr = &represent_result;
  if (!type_) type_ = made;  // another thread may have made it meanwhile
  return type_;
}

void NamedResult::add_types(PyObject* module, const std::string& name) {
  const Object types = Object::borrow(PyImport_AddModule(name.c_str()));
  if (!types) throw PythonError{};
  const std::string prefix = name + ".";
  for (NamedResult* r = first_; r; r = r->next_) {
    if (!std::string_view(r->name_).starts_with(prefix)) continue;
    checked(PyModule_AddObjectRef(types.get(), r->name_ + prefix.size(),
                                  reinterpret_cast<PyObject*>(r->type())));
  }
  checked(PyModule_AddObjectRef(module, "return_types", types.get()));
}

PyObject* NamedResult::all_types() {
  Object types(PyDict_New());
  for (NamedResult* r = first_; r; r = r->next_) {
    checked(PyDict_SetItemString(types.get(), r->name_, reinterpret_cast<PyObject*>(r->type())));
  }
  return types.release();
}

}  // namespace treadle::python
