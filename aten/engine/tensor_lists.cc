// Lists are long, so each check looks at each tensor once.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/tensor_lists.h"

#include "aten/engine/overlap.h"

namespace treadle {

void require_tensors(const char* op, const char* name, TensorList list) {
  check<ErrorKind::Runtime>(!list.empty(), OpName(op), "expected at least one tensor in ", name,
                            ", got an empty list");
}

namespace {

void require_kind(const char* op, const char* name, size_t i, const Tensor& t, const Tensor& like) {
  // Lists are long, so what messages show is made only for them.
  if (t.dtype() != like.dtype()) [[unlikely]] {
    fail<ErrorKind::Runtime>(OpName(op), "expected ", name, "[", i, "] of dtype ",
                             name_of(like.dtype()), ", got ", name_of(t.dtype()));
  }
  if (t.device() != like.device()) [[unlikely]] {
    fail<ErrorKind::Runtime>(OpName(op), "expected ", name, "[", i, "] on ", like.device(),
                             ", got ", t.device());
  }
}

}  // namespace

void require_uniform(const char* op, const char* name, TensorList list) {
  for (size_t i = 1; i < list.size(); ++i) require_kind(op, name, i, list[i], list[0]);
}

void require_alike(const char* op, ArrayRef<NamedList> lists) {
  const auto& [first, wanted] = lists[0];
  require_uniform(op, first, wanted);
  for (const auto& [name, list] : lists.slice(1)) {
    check<ErrorKind::Runtime>(
        list.size() == wanted.size(), OpName(op), "expected ", name, " to hold ", wanted.size(),
        wanted.size() == 1 ? " tensor" : " tensors", ", as ", first, " does, got ", list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      require_kind(op, name, i, list[i], wanted[i]);
      if (list[i].sizes() != wanted[i].sizes()) [[unlikely]] {
        fail<ErrorKind::Runtime>(OpName(op), "expected ", name, "[", i, "] of shape ",
                                 wanted[i].sizes(), ", got ", list[i].sizes());
      }
    }
  }
}

void require_writable(const char* op, TensorList list) {
  for (const Tensor& t : list) require_writable(op, t);
}

void bump_versions(TensorList list) {
  for (const Tensor& t : list) t.impl()->bump_version();
}

}  // namespace treadle
