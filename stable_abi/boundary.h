// The boundary to extensions: exceptions become results, and handles are pointers to objects.
//
//   AOTITorchError aoti_torch_zero_(AtenTensorHandle self) {
//     return guarded([&] { aten::zero_(tensor_of(self)); });
//   }
//
// A tensor's handle is a Tensor in memory of its own, so that a handle may stand for an undefined
// tensor, and may be given another one.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/device/generator.h"
#include "core/tensor/tensor.h"

#define USE_CUDA  // declares the functions for CUDA, too
#include <torch/csrc/inductor/aoti_torch/generated/c_shim_aten.h>
#include <torch/csrc/stable/c/shim.h>

namespace treadle::stable_abi {

// Keeps the text of the exception that is being handled, for the calling thread.
void keep_error() noexcept;
// How many errors the thread has kept, and the text of the last one.
uint64_t error_count() noexcept;
const std::string& last_error() noexcept;

// Runs the body of a function of the ABI.
template <class Body>
AOTITorchError guarded(Body&& body) noexcept {
  try {
    body();
    return AOTI_TORCH_SUCCESS;
  } catch (...) {
    keep_error();
    return AOTI_TORCH_FAILURE;
  }
}

// A pointer of an extension, which must not be null; `what` names it.
template <class T>
T* given(T* pointer, const char* what) {
  check<ErrorKind::Value>(pointer != nullptr, "expected ", what, ", got a null pointer");
  return pointer;
}

// ---- tensors

// The tensor behind a handle; it may be undefined.
inline Tensor& any_tensor_of(AtenTensorHandle handle) {
  return *reinterpret_cast<Tensor*>(given(handle, "a tensor"));
}
inline const Tensor& tensor_of(AtenTensorHandle handle) {
  const Tensor& tensor = any_tensor_of(handle);
  check<ErrorKind::Runtime>(tensor.defined(), "expected a tensor, got an undefined one");
  return tensor;
}
inline AtenTensorHandle new_handle(Tensor tensor) {
  return reinterpret_cast<AtenTensorHandle>(new Tensor(std::move(tensor)));
}
// The tensor, with the handle's reference.
inline Tensor adopt(AtenTensorHandle handle) {
  auto* const owned = reinterpret_cast<Tensor*>(given(handle, "a tensor"));
  Tensor tensor = std::move(*owned);
  delete owned;
  return tensor;
}

// ---- lists, texts, generators

using List = std::vector<StableIValue>;
inline List& list_of(StableListHandle handle) {
  return *reinterpret_cast<List*>(given(handle, "a list"));
}
inline std::string& string_of(StringHandle handle) {
  return *reinterpret_cast<std::string*>(given(handle, "a string"));
}
inline Generator& generator_of(AtenGeneratorHandle handle) {
  return *reinterpret_cast<Generator*>(given(handle, "a generator"));
}

}  // namespace treadle::stable_abi
