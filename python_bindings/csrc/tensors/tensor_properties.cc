// Attributes of Tensor that describe it: shape, dtype, device, T, real, ...
//
// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "aten/ops/complex.h"
#include "aten/ops/copy_.h"
#include "aten/ops/expand.h"
#include "aten/ops/imag.h"
#include "aten/ops/permute.h"
#include "aten/ops/quantized/contents.h"
#include "aten/ops/real.h"
#include "aten/ops/to.h"
#include "aten/ops/transpose.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/binding.h"

namespace treadle::python {
namespace {

template <class F>
PyObject* get(PyObject* self, void*) {
  return guarded([&]() -> PyObject* { return F{}(unwrap(self)); });
}
template <class F>
PyGetSetDef property(const char* name, F, const char* doc) {
  return {name, &get<F>, nullptr, doc, nullptr};
}

const auto shape = [](const Tensor& t) { return wrap_size(t.sizes()); };
const auto dtype = [](const Tensor& t) {
  if (!t.is_strided()) {
    if (const auto shown = info_of(t.layout()).shown_dtype) return wrap(shown(t.dtype()));
  }
  return wrap(t.dtype());
};
const auto device = [](const Tensor& t) { return wrap(t.device()); };
const auto layout = [](const Tensor& t) { return wrap(t.layout()); };
const auto ndim = [](const Tensor& t) { return PyLong_FromLongLong(t.dim()); };
const auto itemsize = [](const Tensor& t) { return PyLong_FromLongLong(t.element_size()); };
const auto nbytes = [](const Tensor& t) { return PyLong_FromLongLong(t.nbytes()); };
const auto is_cpu = [](const Tensor& t) { return to_bool(t.is_cpu()); };
const auto is_meta = [](const Tensor& t) { return to_bool(t.is_meta()); };
const auto is_cuda = [](const Tensor& t) { return to_bool(t.device().type == DeviceType::CUDA); };
const auto is_sparse = [](const Tensor& t) { return to_bool(t.layout() == Layout::SparseCoo); };
const auto is_sparse_csr = [](const Tensor& t) { return to_bool(t.layout() == Layout::SparseCsr); };
const auto is_quantized = [](const Tensor& t) { return to_bool(quantized::is_quantized(t)); };
const auto never = [](const Tensor&) { return to_bool(false); };

const auto transposed = [](const Tensor& t) {
  DimVector dims;
  for (int64_t d = t.dim(); d-- > 0;) dims.push_back(d);
  return wrap(aten::permute(t, dims));
};
const auto matrix_transposed = [](const Tensor& t) {
  check<ErrorKind::Runtime>(t.dim() >= 2, OpName("mT"),
                            "expected a tensor with at least 2 dimensions, got ", t);
  return wrap(aten::transpose(t, -2, -1));
};

// Operators that Python shows as attributes.
PyObject* named_operator(PyObject* self, void* name) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = unwrap(self);
    const Binding& binding = find_binding(static_cast<const char*>(name));
    if (binding.function) return binding.function(nullptr, &self, 1, nullptr);
    check<ErrorKind::NotImplemented>(!t.is_complex(), OpName(static_cast<const char*>(name)),
                                     "not available for ", t);
    return new_ref(self);
  });
}
// Writes one part: x.real = v. If that is recorded, the whole is written, because a view of another
// dtype has no gradient formula.
void write_part(const Tensor& self, bool real, const Tensor& source) {
  if (!(grad_enabled() && (self.requires_grad() || source.requires_grad()))) {
    aten::copy_(real ? aten::real(self) : aten::imag(self), source);
    return;
  }
  const Tensor part = aten::expand(aten::to(source, to_real(self.dtype())), self.sizes());
  aten::copy_(self,
              real ? aten::complex(part, aten::imag(self)) : aten::complex(aten::real(self), part));
}
int set_part(PyObject* self, PyObject* value, void* name) {
  return guarded([&]() -> int {
    const char* const part = static_cast<const char*>(name);
    check<ErrorKind::Type>(value != nullptr, OpName(part), "expected a value, the attribute stays");
    const Tensor& t = unwrap(self);
    const Tensor source = operand_tensor(part, value);
    const bool real = std::string_view(part) == "real";
    check<ErrorKind::NotImplemented>(real || t.is_complex(), OpName(part), "not available for ", t);
    run(
        [&] {
          if (t.is_complex())
            write_part(t, real, source);
          else
            aten::copy_(t, source);
        },
        source);
    return 0;
  });
}
PyObject* adjoint(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = unwrap(self);
    check<ErrorKind::Runtime>(t.dim() == 2 || t.dim() == 0, OpName("H"), "expected a matrix, got ",
                              t);
    Object flipped(wrap(t.dim() == 0 ? t : aten::transpose(t, 0, 1)));
    return t.is_complex() ? call_operator("conj", flipped.get()) : flipped.release();
  });
}
PyObject* matrix_adjoint(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = unwrap(self);
    Object flipped(matrix_transposed(t));
    return t.is_complex() ? call_operator("conj", flipped.get()) : flipped.release();
  });
}

}  // namespace

void add_properties(std::vector<PyGetSetDef>& properties) {
  properties.insert(
      properties.end(),
      {
          property("shape", shape, "The sizes."),
          property("dtype", dtype, "The type of the elements."),
          property("device", device, "Where the elements are."),
          property("layout", layout, "How the elements are kept."),
          property("ndim", ndim, "The number of dimensions."),
          property("itemsize", itemsize, "Bytes of one element."),
          property("nbytes", nbytes, "Bytes of all elements."),
          property("is_cpu", is_cpu, nullptr),
          property("is_meta", is_meta, nullptr),
          property("is_cuda", is_cuda, nullptr),
          property("is_sparse", is_sparse, "Whether the layout is sparse_coo."),
          property("is_sparse_csr", is_sparse_csr, "Whether the layout is sparse_csr."),
          property("is_quantized", is_quantized, "Whether the elements are quantized."),
          property("is_mps", never, nullptr),
          property("is_xpu", never, nullptr),
          property("is_nested", never, nullptr),
          property("T", transposed, "The tensor with its dimensions in reverse order."),
          property("mT", matrix_transposed, "The tensor with its last two dimensions exchanged."),
          {"H", adjoint, nullptr, "The conjugate transpose of a matrix.", nullptr},
          {"mH", matrix_adjoint, nullptr, "The conjugate of mT.", nullptr},
          {"real", named_operator, set_part, "The real part.", const_cast<char*>("real")},
          {"imag", named_operator, set_part, "The imaginary part.", const_cast<char*>("imag")},
      });
}

}  // namespace treadle::python
