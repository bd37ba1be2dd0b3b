// x[...] and x[...] = v.
//
// An index is read from left to right. Ints, slices, None and Ellipsis make a view. Tensors, masks
// and lists are noted with their dimension of that view, and applied together at the end, as in
// NumPy. The view is made at once, or step by step where a layer must see the operators.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "aten/ops/copy_.h"
#include "aten/ops/fill_.h"
#include "aten/ops/index.h"
#include "aten/ops/index_put_.h"
#include "aten/ops/nonzero.h"
#include "aten/ops/select.h"
#include "aten/ops/slice.h"
#include "aten/ops/unbind.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/view.h"
#include "aten/ops/views/view_geometry.h"
#include "autograd/view.h"
#include "python_bindings/csrc/arguments/arg_parser.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/dispatch/overrides.h"
#include "python_bindings/csrc/tensors/construct.h"

namespace treadle::python {
namespace {

// The result of an index: a view, and tensors to look up in its dimensions.
struct Selection {
  Tensor view;
  std::vector<Tensor> lookups;  // undefined: all of that dimension
  bool has_lookup = false;
};

bool is_mask(const Tensor& t) {
  return t.dtype() == ScalarType::Bool || t.dtype() == ScalarType::UInt8;
}

// A list that holds slices, None, Ellipsis, tensors or lists is read as a tuple of indices, as
// PyTorch reads lists of less than 32 items. Any other list is one index.
bool is_index_list(PyObject* o) {
  if (!PyList_Check(o)) return PyTuple_Check(o);
  const Py_ssize_t size = PyList_GET_SIZE(o);
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item = PyList_GET_ITEM(o, i);
    if (PySlice_Check(item) || item == Py_None || item == Py_Ellipsis) return true;
    if (is_tensor(item) && unwrap(item).dim() > 0) return true;
    if (size < 32 && (PyList_Check(item) || PyTuple_Check(item))) {
      // NumPy reads it as one index.
      checked(PyErr_WarnEx(PyExc_UserWarning,
                           "index: a list of lists is read as a tuple of indices; write "
                           "x[tuple(index)] for that, or x[treadle.tensor(index)] for one index",
                           1));
      return true;
    }
  }
  return false;
}

// The index tensor for a list, an array or a NumPy scalar; undefined for objects that are no index.
Tensor as_index_tensor(PyObject* o) {
  if (is_tensor(o)) return unwrap(o);
  if (is_numpy_array(o)) return tensor_from_data(o, std::nullopt, kCPU);
  if (PyUnicode_Check(o) || PyBytes_Check(o)) return Tensor();
  if (PyList_Check(o) || PyTuple_Check(o) || PyRange_Check(o)) {
    const Tensor t = tensor_from_data(o, std::nullopt, kCPU);
    return t.numel() == 0 && is_floating(t.dtype()) ? empty_cpu(t.sizes(), ScalarType::Int64) : t;
  }
  return Tensor();
}

// The dimensions that an item of the index uses up.
int64_t dims_used(PyObject* item, const Tensor& tensor) {
  if (PyLong_CheckExact(item) || PySlice_Check(item)) return 1;
  if (item == Py_None || item == Py_Ellipsis || is_bool(item)) return 0;
  return tensor.defined() && is_mask(tensor) ? tensor.dim() : 1;
}

// Whether select, slice and unsqueeze of `self` would only make views: nothing is recorded, and no
// layer but autograd takes the calls.
bool are_mere_views(const Tensor& self) {
  const LayerState& layers = layer_state();
  return layers.included == 0 && layers.excluded == 0 &&
         !(self.layers() & (layer_bit(Layer::Dispatch) | layer_bit(Layer::Layout))) &&
         !autograd::records(self);
}

// The use of the view. Autograd must know its base if code may keep the view, or if a write to it
// is recorded.
enum class Use : bool { Kept, Written };

class Selector {
 public:
  Selector(const Tensor& self, Use use)
      : geometry_(self), rank_(self.dim()), use_(use), at_once_(are_mere_views(self)) {
    selection_.view = self;
  }

  Selection apply(ArrayRef<PyObject*> items) {
    const Tensor none;
    std::vector<Tensor> tensors;  // of the items, once there is one
    int64_t used = 0, ellipses = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      if (!is_simple(items[i])) {
        tensors.resize(items.size());
        tensors[i] = as_index_tensor(items[i]);
      }
      used += dims_used(items[i], tensors.empty() ? none : tensors[i]);
      ellipses += items[i] == Py_Ellipsis;
    }
    check<ErrorKind::Index>(used <= rank_, OpName("index"), "expected at most ", rank_,
                            " indices for a tensor of shape ", geometry_.sizes(), ", got ", used);
    check<ErrorKind::Index>(ellipses <= 1, OpName("index"),
                            "expected at most one ellipsis (...), got ", ellipses);
    for (size_t i = 0; i < items.size(); ++i)
      step(items[i], tensors.empty() ? none : tensors[i], rank_ - used);
    return finish();
  }

 private:
  static bool is_simple(PyObject* o) {
    return PyLong_Check(o) || PySlice_Check(o) || o == Py_None || o == Py_Ellipsis || is_bool(o) ||
           is_int(o);
  }

  Selection finish() {
    if (at_once_ && changed_) {
      Tensor view = geometry_.over(selection_.view);
      selection_.view =
          use_ == Use::Kept ? autograd::as_view(selection_.view, std::move(view)) : std::move(view);
    }
    return std::move(selection_);
  }

  void step(PyObject* item, const Tensor& tensor, int64_t unused) {
    if (PyLong_CheckExact(item)) {
      select(to_int("index", item));
    } else if (item == Py_None) {
      unsqueeze();
      ++dim_;
    } else if (item == Py_Ellipsis) {
      dim_ += unused;
    } else if (PySlice_Check(item)) {
      slice(item);
    } else if (is_bool(item)) {
      look_up_bool(to_boolean(item));
    } else if (tensor.defined()) {
      look_up_tensor(tensor);
    } else if (is_int(item)) {
      select(to_int("index", item));
    } else {
      fail<ErrorKind::Index>(
          OpName("index"),
          "expected an int, a slice, None, ..., a tensor or a list of ints or bools, got ",
          type_text(item));
    }
  }

  size_t dim() const { return static_cast<size_t>(dim_); }

  void select(int64_t index) {
    const int64_t size = geometry_.sizes()[dim()];
    check<ErrorKind::Index>(index >= -size && index < size, OpName("index"), "expected index in [",
                            -size, ", ", size, ") for dimension ", dim_, ", got index = ", index);
    geometry_.select(dim(), index < 0 ? index + size : index);
    changed_ = true;
    if (!at_once_) selection_.view = aten::select(selection_.view, dim_, index);
  }

  void slice(PyObject* item) {
    Py_ssize_t start, stop, step;
    if (has_bad_bound(item)) [[unlikely]]
      fail<ErrorKind::Type>(OpName("index"), "expected a slice of ints, got ", slice_text(item));
    checked(PySlice_Unpack(item, &start, &stop, &step));  // refuses a step of 0
    const int64_t size = geometry_.sizes()[dim()];
    if (start != 0 || stop < size || step != 1) {
      geometry_.slice(dim(), shape::slice_range(start, stop, step, size));
      changed_ = true;
      if (!at_once_) selection_.view = aten::slice(selection_.view, dim_, start, stop, step);
    }
    ++dim_;
  }
  static bool has_bad_bound(PyObject* item) {
    auto* s = reinterpret_cast<PySliceObject*>(item);
    for (PyObject* bound : {s->start, s->stop, s->step}) {
      if (bound != Py_None && !PyIndex_Check(bound)) return true;
    }
    return false;
  }
  static std::string slice_text(PyObject* item) {
    return std::string(utf8(Object(PyObject_Repr(item)).get()));
  }

  void unsqueeze() {
    geometry_.unsqueeze(dim());
    changed_ = true;
    if (!at_once_) selection_.view = aten::unsqueeze(selection_.view, dim_);
  }

  void look_up_bool(bool value) {
    unsqueeze();
    Tensor positions = empty_cpu({value ? 1 : 0}, ScalarType::Int64);
    if (value) *positions.data_as<int64_t>() = 0;
    look_up(std::move(positions));
  }

  void look_up_tensor(const Tensor& index) {
    const ScalarType dtype = index.dtype();
    check<ErrorKind::Index>(is_integral(dtype, true), OpName("index"),
                            "expected a tensor of ints or bools, got one of dtype ", dtype);
    if (dtype == ScalarType::UInt8) detail::warn_of_bytes("index");
    if (index.dim() > 0) {
      if (is_mask(index) && index.numel() == 0 && names_nothing(index))
        for (int64_t d = 0; d < index.dim(); ++d) look_up(empty_cpu({0}, ScalarType::Int64));
      else if (is_mask(index) && index.dim() > 1)
        look_up_mask(index);
      else
        look_up(index);
    } else if (is_mask(index)) {
      look_up_bool(element("index", index).to<bool>());
    } else if (index.is_meta()) {
      look_up(index);
    } else {
      select(element("index", index).to<int64_t>());
    }
  }

  // Whether an empty mask has, in each dimension, the size of the dimension that it selects from,
  // or 0.
  bool names_nothing(const Tensor& mask) const {
    for (int64_t d = 0; d < mask.dim(); ++d) {
      const int64_t size = mask.sizes()[static_cast<size_t>(d)];
      if (size != 0 && size != geometry_.sizes()[dim() + static_cast<size_t>(d)]) return false;
    }
    return true;
  }

  // A mask over several dimensions is the list of its true positions in each of them.
  void look_up_mask(const Tensor& mask) {
    const IntList covered =
        IntList(geometry_.sizes()).slice(dim(), static_cast<size_t>(mask.dim()));
    check<ErrorKind::Index>(mask.sizes() == covered, OpName("index"), "expected a mask of shape ",
                            covered, " at dimension ", dim_, ", got shape ", mask.sizes());
    const Tensor positions = run([&] { return aten::nonzero(mask); }, mask);
    for (int64_t d = 0; d < mask.dim(); ++d) look_up(aten::select(positions, 1, d));
  }

  void look_up(Tensor index) {
    selection_.lookups.resize(dim() + 1);
    selection_.lookups[dim()] = std::move(index);
    selection_.has_lookup = true;
    ++dim_;
  }

  Selection selection_;
  shape::ViewGeometry geometry_;  // of the view, which is made of it at the end if `at_once_`
  int64_t rank_;
  int64_t dim_ = 0;
  Use use_;
  bool at_once_, changed_ = false;
};

// Whether reading the bounds of a slice runs no code of the user, who could change the tensor.
bool is_plain_slice(PyObject* item) {
  if (!PySlice_Check(item)) return false;
  auto* s = reinterpret_cast<PySliceObject*>(item);
  for (PyObject* bound : {s->start, s->stop, s->step}) {
    if (bound != Py_None && !PyLong_CheckExact(bound)) return false;
  }
  return true;
}

// The view that ints and slices of ints select, by far the most common index: its geometry is
// written once. Undefined for an index that Selector must read, which also raises the errors.
Tensor select_plain(const Tensor& self, PyObject* index, Use use) {
  PyObject* const* items = &index;
  size_t count = 1;
  if (PyTuple_CheckExact(index)) {
    items = &PyTuple_GET_ITEM(index, 0);
    count = static_cast<size_t>(PyTuple_GET_SIZE(index));
  }
  const IntList from = self.sizes();
  if (count == 0 || count > from.size() || !are_mere_views(self) || self.storage()->needs_care())
    return Tensor();
  const IntList steps = self.strides();
  DimVector sizes, strides;
  int64_t offset = self.storage_offset();
  bool empty = self.numel() == 0;
  for (size_t d = 0; d < count; ++d) {
    const int64_t size = from[d], stride = steps[d];
    if (PyLong_CheckExact(items[d])) {
      int overflow;
      int64_t at = PyLong_AsLongLongAndOverflow(items[d], &overflow);
      at += at < 0 ? size : 0;
      if (overflow || at < 0 || at >= size) return Tensor();
      offset = shape::moved_offset(offset, at, stride, empty);
    } else if (is_plain_slice(items[d])) {
      Py_ssize_t start, stop, step;
      checked(PySlice_Unpack(items[d], &start, &stop, &step));  // refuses a step of 0
      const shape::SliceRange range = shape::slice_range(start, stop, step, size);
      empty |= range.length == 0;
      offset = shape::moved_offset(offset, range.first, stride, empty);
      sizes.push_back(range.length);
      strides.push_back(shape::cut_stride(stride, range));
    } else {
      return Tensor();
    }
  }
  for (size_t d = count; d < from.size(); ++d) {
    sizes.push_back(from[d]);
    strides.push_back(steps[d]);
  }
  Tensor view = part_of(self, sizes, strides, offset);
  return use == Use::Kept ? autograd::as_view(self, std::move(view)) : view;
}

Selection select_other(const Tensor& self, PyObject* index, Use use) {
  if (is_tensor(index) && self.dim() > 0) {  // x[rows]
    const Tensor& rows = unwrap(index);
    if (rows.dim() > 0 && rows.dtype() == ScalarType::Int64)
      return {.view = self, .lookups = {rows}, .has_lookup = true};
  }
  if (!is_index_list(index)) {
    PyObject* const items[] = {index};
    return Selector(self, use).apply({items, 1});
  }
  Object items(PySequence_Tuple(index));
  PyObject* const* first = &PyTuple_GET_ITEM(items.get(), 0);
  return Selector(self, use).apply({first, static_cast<size_t>(PyTuple_GET_SIZE(items.get()))});
}

// Whether a tensor that is the index, or is part of it, takes over the call.
bool index_overrides(PyObject* index) {
  if (!PyTuple_Check(index)) return has_override(index);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); ++i) {
    if (has_override(PyTuple_GET_ITEM(index, i))) return true;
  }
  return false;
}

PyObject* get_item(PyObject* self, PyObject* index) {
  return guarded([&]() -> PyObject* {
    const Tensor& tensor = unwrap(self);
    if (Tensor view = select_plain(tensor, index, Use::Kept); view.defined())
      return wrap(std::move(view));
    if (index_overrides(index)) [[unlikely]]
      return call_override_of_method(self, "__getitem__", index);
    Selection selection = select_other(tensor, index, Use::Kept);
    if (selection.has_lookup) {
      return wrap(
          run([&] { return aten::index(selection.view, selection.lookups); }, selection.view));
    }
    // x[...] is a separate view, not x itself.
    return wrap(selection.view.is_same(tensor) ? aten::view(tensor, tensor.sizes())
                                               : std::move(selection.view));
  });
}

// Leading dimensions of size 1 that the target does not have are no hindrance to assignment.
Tensor without_leading_ones(const Tensor& value, int64_t rank) {
  DimVector sizes(value.sizes());
  while (static_cast<int64_t>(sizes.size()) > rank && sizes[0] == 1) sizes.erase(0);
  return sizes.size() == value.sizes().size() ? value : aten::view(value, sizes);
}

int set_item(PyObject* self, PyObject* index, PyObject* value) {
  return guarded([&]() -> int {
    if (value && (overridden(self) || index_overrides(index))) [[unlikely]] {
      Object done(call_override_of_method(self, "__setitem__", index, value));
      return 0;
    }
    check<ErrorKind::Type>(value != nullptr, OpName("del"),
                           "expected no deletion, a tensor keeps its elements");
    const Tensor& tensor = unwrap(self);
    const bool recorded = is_tensor(value) && autograd::records(unwrap(value));
    const Use use = recorded ? Use::Kept : Use::Written;
    Selection selection;
    selection.view = select_plain(tensor, index, use);
    if (!selection.view.defined()) selection = select_other(tensor, index, use);
    if (!selection.has_lookup && is_number(value)) {
      const Scalar number = to_scalar("setitem", value);
      run([&] { return aten::fill_(selection.view, number); }, selection.view);
      return 0;
    }
    check<ErrorKind::Type>(!PyUnicode_Check(value) && value != Py_None, OpName("setitem"),
                           "expected a tensor, a number or a list of numbers, got ",
                           type_text(value));
    const Tensor given =
        is_tensor(value) ? unwrap(value) : tensor_from_data(value, tensor.dtype(), tensor.device());
    if (!selection.has_lookup) {
      const Tensor source = without_leading_ones(given, selection.view.dim());
      run([&] { return aten::copy_(selection.view, source); }, selection.view);
      return 0;
    }
    const Tensor values = convert_to(given, tensor.dtype(), tensor.device());
    run([&] { return aten::index_put_(selection.view, selection.lookups, values); },
        selection.view);
    return 0;
  });
}

Py_ssize_t length(PyObject* self) {
  return guarded([&]() -> Py_ssize_t {
    const Tensor& tensor = unwrap(self);
    check<ErrorKind::Type>(tensor.dim() > 0, "len() of a 0-d tensor");
    return tensor.size(0);
  });
}

PyObject* iterate(PyObject* self) {
  return guarded([&] {
    const Tensor& tensor = unwrap(self);
    check<ErrorKind::Type>(tensor.dim() > 0, "iteration over a 0-d tensor");
    Object parts(overridden(self) ? call_operator("unbind", self) : wrap(aten::unbind(tensor, 0)));
    return Object(PyObject_GetIter(parts.get())).release();
  });
}

int contains(PyObject* self, PyObject* item) {
  return guarded([&]() -> int {
    check<ErrorKind::Runtime>(is_tensor(item) || is_number(item), OpName("in"),
                              "expected a tensor or a number, got ", type_text(item));
    Object equal(PyObject_RichCompare(self, item, Py_EQ));
    Object any(call_operator("any", equal.get()));
    return checked(PyObject_IsTrue(any.get()));
  });
}

}  // namespace

void add_index_slots(std::vector<PyType_Slot>& slots) {
  const PyType_Slot all[] = {
      {Py_mp_subscript, slot(&overridable_slot<"__getitem__", &get_item, kAnyObject, PyObject*>)},
      {Py_mp_ass_subscript, slot(&set_item)},
      {Py_mp_length, slot(&overridable_slot<"__len__", &length, kLength>)},
      {Py_tp_iter, slot(&iterate)},
      {Py_sq_contains, slot(&overridable_slot<"__contains__", &contains, kTruth, PyObject*>)},
  };
  slots.insert(slots.end(), std::begin(all), std::end(all));
}

}  // namespace treadle::python
