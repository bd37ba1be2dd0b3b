// Structured operators: the shape rule describes the outputs, this file makes them, and the kernel
// fills them.
//
// A kernel of such an operator is `void k(arguments..., const Tensor& out...)`: every `out` has the
// shape, dtype and memory format of its spec, and shares no memory with an input (unless the entry
// says `out_from`).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "aten/engine/deferral.h"
#include "core/dispatch/operator.h"
#include "core/tensor/tensor.h"

namespace treadle {

// The result of a shape rule for one output.
struct TensorSpec {
  DimVector sizes;
  ScalarType dtype;
  Device device = kCPU;
  MemoryFormat format = MemoryFormat::Contiguous;  // how the kernel writes it
};

// One output of a call, of any form.
class Output {
 public:
  // Functional form: a new tensor.
  explicit Output(const TensorSpec& spec);
  // out= form: `out` itself when it can be written directly; a temporary, copied to `out` by
  // finish(), when it has another format, overlaps an input or has another shape, which finish()
  // gives it then: an error unless its storage is resizable.
  // RuntimeError when device or dtype does not fit (the spec's dtype must be castable to out's).
  Output(const char* op, const TensorSpec& spec, const Tensor& out, ArrayRef<const Tensor*> inputs);

  // `out_from`: the output starts as a copy of `source`, which has the shape and dtype of the spec.
  static Output copy_of(const char* op, const TensorSpec& spec, const Tensor& source);
  static Output copy_of(const char* op, const TensorSpec& spec, const Tensor& source,
                        const Tensor& out, ArrayRef<const Tensor*> inputs);
  // In-place form: the shape of the spec must be self's, its dtype castable to self's. With `keep`
  // the kernel starts from self's contents, in self itself where that is contiguous and shares no
  // memory with `inputs`. Overlap of elements within self (an expanded tensor) is a RuntimeError.
  static Output in_place(const char* op, const TensorSpec& spec, const Tensor& self,
                         ArrayRef<const Tensor*> inputs, bool keep);

  const Tensor& tensor() const { return tensor_; }
  // Copies a temporary back and bumps the version of a given `out`; returns the tensor the caller
  // sees.
  const Tensor& finish();

 private:
  Output() = default;
  Tensor tensor_;  // what the kernel writes
  Tensor given_;   // what the caller gave; undefined in the functional form
};

// Checks of an `out` argument, which throw before anything is written: it is a tensor on the spec's
// device, and the spec's dtype can be cast to its.
void require_out(const char* op, const TensorSpec& spec, const Tensor& out);
// RuntimeError when an `out` that is to be given these sizes shares its storage with an input.
void require_resized_apart(const char* op, IntList sizes, const Tensor& out,
                           ArrayRef<const Tensor*> inputs);
// RuntimeError when two outputs of one call would take each other's values: they overlap, or lie in
// one storage and one of them is to be resized.
void require_outs_apart(const char* op, ArrayRef<TensorSpec> specs, ArrayRef<const Tensor*> outs);
// Gives `out` these sizes, contiguous, growing its storage where needed; nothing when it has them
// already. RuntimeError for memory that cannot grow.
void resize_out(const char* op, const Tensor& out, IntList sizes);

// out= form of an operator that makes its result itself: writes the result to `out` by the rules of
// Output. RuntimeError when the result carries a gradient, which a given `out` cannot.
Tensor copy_to_out(const char* op, const Tensor& result, const Tensor& out);
// The same of several results: every `out` is checked before the first is written.
void copy_to_outs(const char* op, ArrayRef<const Tensor*> results, ArrayRef<const Tensor*> outs);
// The in-place form: the result goes to self, whose shape and dtype it must fit.
Tensor copy_to_self(const char* op, const Tensor& self, const Tensor& result);

// The kernel cell of an operator for these ids; null when there is a boxed kernel instead. Raises
// when there is neither.
void* kernel_or_boxed(const Operator& op, Device device, Layout layout, ScalarType dtype,
                      const BoxedKernel*& boxed);

// Calls what kernel_or_boxed() found. A boxed kernel is given what an unboxed one is: the arguments
// and then the outputs to fill.
template <class Kernel, class... Args>
inline auto call_kernel(const Operator& op, void* kernel, const BoxedKernel* boxed,
                        const Args&... args) {
  const RunsAtOnce kernel_runs;
  if (kernel) [[likely]]
    return reinterpret_cast<Kernel*>(kernel)(args...);
  return BoxedCall<Kernel>::through(*boxed, op, args...);
}

// Checks that the defined tensors share one device, and returns it. A 0-dim CPU tensor does not
// count beside another device. RuntimeError: "gather: expected all tensors on one device, got self
// on cpu and index on cuda:0".
Device common_device(const char* op, ArrayRef<const Tensor*> tensors, ArrayRef<const char*> names);
// The same of the tensors that a kernel is about to read. Those that wait are computed first: what
// they were computed from then makes room for the kernel's results.
Device common_device_of_read(const char* op, ArrayRef<const Tensor*> tensors,
                             ArrayRef<const char*> names);

}  // namespace treadle
