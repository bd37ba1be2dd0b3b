// Makes and checks the outputs of structured operators.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/structured.h"

#include <algorithm>

#include "aten/engine/copy.h"
#include "aten/engine/deferral.h"
#include "aten/engine/overlap.h"
#include "aten/engine/stored_types.h"
#include "aten/engine/strides/view_shapes.h"
#include "core/threads/quiescence.h"

namespace treadle {
namespace {

bool meets_any(const Tensor& t, ArrayRef<const Tensor*> inputs) {
  for (const Tensor* in : inputs) {
    if (in->defined() && meets(t, *in)) return true;
  }
  return false;
}

Tensor new_output(const TensorSpec& spec) {
  if (spec.format == MemoryFormat::Contiguous) [[likely]]
    return empty_tensor(spec.sizes, spec.dtype, spec.device);
  return empty_strided_tensor(spec.sizes, shape::strides_in_format("out", spec.sizes, spec.format),
                              spec.dtype, spec.device);
}

// Whether a kernel may write to `t`, which has the shape of the spec.
bool has_format(const Tensor& t, const TensorSpec& spec) {
  if (spec.format == MemoryFormat::Contiguous) return t.is_contiguous();
  return t.strides() == IntList(shape::strides_in_format("out", spec.sizes, spec.format));
}

}  // namespace

void require_resized_apart(const char* op, IntList sizes, const Tensor& out,
                           ArrayRef<const Tensor*> inputs) {
  for (const Tensor* in : inputs) {
    check<ErrorKind::Runtime>(!in->defined() || in->storage() != out.storage(), OpName(op),
                              "expected an out of shape ", sizes,
                              ", for it shares memory with an input, got ", out.sizes());
  }
}

void require_outs_apart(const char* op, ArrayRef<TensorSpec> specs, ArrayRef<const Tensor*> outs) {
  const auto fits = [&](size_t i) { return outs[i]->sizes() == IntList(specs[i].sizes); };
  for (size_t i = 0; i < outs.size(); ++i) {
    for (size_t k = i + 1; k < outs.size(); ++k) {
      if (!outs[i]->defined() || !outs[k]->defined()) continue;
      const bool resized = outs[i]->storage() == outs[k]->storage() && !(fits(i) && fits(k));
      check<ErrorKind::Runtime>(!resized && !meets(*outs[i], *outs[k]), OpName(op),
                                "expected outs in memory of their own, got outs ", i, " and ", k,
                                resized ? " in one storage, to be resized" : " that overlap");
    }
  }
}

void require_out(const char* op, const TensorSpec& spec, const Tensor& out) {
  check<ErrorKind::Type>(out.defined(), OpName(op),
                         "expected a tensor for argument 'out', got None");
  check<ErrorKind::Runtime>(out.device() == spec.device, OpName(op), "expected out on ",
                            spec.device, ", got out on ", out.device());
  check<ErrorKind::Runtime>(can_cast(spec.dtype, out.dtype()), OpName(op),
                            "expected out of a dtype that ", name_of(spec.dtype),
                            " can be cast to, got ", name_of(out.dtype()));
  if (spec.dtype == out.dtype()) return;
  for (const ScalarType dtype : {spec.dtype, out.dtype()})
    if (is_stored(dtype)) require_convertible(dtype);
}

namespace {

// Whether `out`, given this many bytes from its first element on, would take in what lies beside it
// in a storage that somebody else may look at.
bool would_touch_others(const Tensor& out, int64_t first, int64_t needed) {
  const int64_t end = std::min(needed, static_cast<int64_t>(out.storage()->nbytes()));
  if (end <= first || out.storage()->use_count() == 1) return false;
  return !shape::is_dense(out) || end > first + out.nbytes();
}

// The bytes that the storage of `out` needs for these sizes; throws where `out` cannot have them.
int64_t require_resizable(const char* op, const Tensor& out, IntList sizes) {
  check<ErrorKind::Runtime>(out.storage()->writable(), OpName(op),
                            "expected memory that may be written, got a read-only tensor");
  check<ErrorKind::Runtime>(!out.requires_grad(), OpName(op), "expected an out of shape ", sizes,
                            ", for one that requires grad cannot be resized, got ", out.sizes());
  const int64_t item = out.element_size();
  const int64_t first = out.storage_offset() * item;
  const int64_t bytes = checked_numel(sizes, item) * item;
  int64_t needed;
  check<ErrorKind::Runtime>(!__builtin_add_overflow(first, bytes, &needed), OpName(op),
                            "expected an out that can grow to ", sizes,
                            ", got a storage offset of ", out.storage_offset());
  check<ErrorKind::Runtime>(
      !would_touch_others(out, first, needed), OpName(op), "expected an out of shape ", sizes,
      ", for it is a view and may not take in what lies beside it, got ", out.sizes());
  if (needed > static_cast<int64_t>(out.storage()->nbytes())) {
    const std::string held = out.storage()->what_holds_it();
    check<ErrorKind::Runtime>(held.empty(), OpName(op), "expected an out of shape ", sizes,
                              ", for its storage cannot grow, got ", out.sizes(),
                              "; the storage is ", held);
  }
  return needed;
}

}  // namespace

void resize_out(const char* op, const Tensor& out, IntList sizes) {
  if (out.sizes() == sizes) return;
  const Quiescence quiet(op);
  const int64_t needed = require_resizable(op, out, sizes);
  if (needed > static_cast<int64_t>(out.storage()->nbytes()))
    out.storage()->resize(static_cast<size_t>(needed));
  out.impl()->set_contiguous_sizes(sizes);
}

Output::Output(const TensorSpec& spec) : tensor_(new_output(spec)) {}

Output::Output(const char* op, const TensorSpec& spec, const Tensor& out,
               ArrayRef<const Tensor*> inputs)
    : given_(out) {
  require_out(op, spec, out);
  const bool same_shape = out.sizes() == IntList(spec.sizes);
  if (same_shape) {
    require_writable(op, out);
  } else {
    require_resized_apart(op, spec.sizes, out, inputs);
    require_resizable(op, out, spec.sizes);
  }
  // An `out` of another shape gets it in finish(): a kernel that throws leaves it as it was. One
  // that is also an input keeps its values until the kernel has read them.
  const bool direct =
      same_shape && out.dtype() == spec.dtype && has_format(out, spec) && !meets_any(out, inputs);
  tensor_ = direct ? out : new_output(spec);
}

Output Output::copy_of(const char*, const TensorSpec& spec, const Tensor& source) {
  Output o(spec);
  copy_strided(o.tensor_, source);
  return o;
}

Output Output::copy_of(const char* op, const TensorSpec& spec, const Tensor& source,
                       const Tensor& out, ArrayRef<const Tensor*> inputs) {
  // Always a temporary: the kernel may throw when the copy is made.
  Output o(op, spec, out, inputs);
  if (o.tensor_.is_same(out)) o.tensor_ = new_output(spec);
  copy_strided(o.tensor_, source);
  return o;
}

Output Output::in_place(const char* op, const TensorSpec& spec, const Tensor& self,
                        ArrayRef<const Tensor*> inputs, bool keep) {
  check<ErrorKind::Type>(self.defined(), OpName(op),
                         "expected a tensor for argument 'self', got None");
  check<ErrorKind::Runtime>(self.sizes() == IntList(spec.sizes), OpName(op),
                            "expected a result of self's shape ", self.sizes(), ", got ",
                            spec.sizes);
  check<ErrorKind::Runtime>(can_cast(spec.dtype, self.dtype()), OpName(op),
                            "expected a result that can be written to self of dtype ",
                            name_of(self.dtype()), ", got ", name_of(spec.dtype));
  require_writable(op, self);
  const bool direct =
      self.dtype() == spec.dtype && has_format(self, spec) && !meets_any(self, inputs);
  Output o;
  o.given_ = self;
  o.tensor_ = direct ? self : new_output(spec);
  if (keep && !direct) copy_strided(o.tensor_, self);
  return o;
}

const Tensor& Output::finish() {
  if (!given_.defined()) return tensor_;
  if (!tensor_.is_same(given_)) {
    resize_out("out", given_, tensor_.sizes());
    copy_strided(given_, tensor_);
  }
  given_.impl()->bump_version();
  return given_;
}

void* kernel_or_boxed(const Operator& op, Device device, Layout layout, ScalarType dtype,
                      const BoxedKernel*& boxed) {
  boxed = nullptr;
  if (void* kernel = op.table().find(device, layout, dtype)) return kernel;
  boxed = find_boxed(op, device, layout, dtype);
  if (boxed == nullptr) no_kernel(op, device, layout, dtype);
  return nullptr;
}

Device common_device(const char* op, ArrayRef<const Tensor*> tensors, ArrayRef<const char*> names) {
  const auto mismatch = [&](size_t i, size_t k) {
    fail<ErrorKind::Runtime>(OpName(op), "expected all tensors on one device, got ", names[i],
                             " on ", tensors[i]->device(), " and ", names[k], " on ",
                             tensors[k]->device());
  };
  bool all_cpu = true;  // the commonest, and nothing can be wrong
  for (const Tensor* t : tensors) all_cpu = all_cpu && (!t->defined() || t->is_cpu());
  if (all_cpu) return kCPU;
  const size_t none = tensors.size();
  size_t first = none, number = none;  // a 0-dim tensor of the CPU is taken for a number
  bool all_numbers = true;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = *tensors[i];
    if (!t.defined()) continue;
    all_numbers = all_numbers && t.dim() == 0;
    if (t.dim() == 0 && t.is_cpu()) {
      number = i;
      continue;
    }
    if (first == none) first = i;
    if (t.device() != tensors[first]->device()) mismatch(first, i);
  }
  if (first == none) return kCPU;
  const Device result = tensors[first]->device();
  // Where no tensor has a dimension, none is a number beside the others.
  if (all_numbers && number != none && !result.is_cpu()) mismatch(first, number);
  return result;
}

Device common_device_of_read(const char* op, ArrayRef<const Tensor*> tensors,
                             ArrayRef<const char*> names) {
  const Device device = common_device(op, tensors, names);
  if (device.is_cpu() && least_deferred() != kDeferNever) [[unlikely]] {
    for (const Tensor* t : tensors)
      if (t->defined() && t->is_strided() && t->storage()->has_memory()) t->storage()->data();
  }
  return device;
}

}  // namespace treadle
