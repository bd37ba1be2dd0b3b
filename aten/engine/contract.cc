// The messages of contract violations.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/contract.h"

namespace treadle::contract {

void require_defined(const char* op, const char* argument, const Tensor& t) {
  check<ErrorKind::Type>(t.defined(), OpName(op), "expected a tensor for argument '", argument,
                         "', got None");
}

void require_defined(const char* op, const char* argument, TensorList list) {
  for (size_t i = 0; i < list.size(); ++i) {
    check<ErrorKind::Type>(list[i].defined(), OpName(op), "expected tensors for argument '",
                           argument, "', got None at position ", i);
  }
}

void require_length(const char* op, const char* argument, IntList list, size_t length) {
  check<ErrorKind::Runtime>(list.size() == length, OpName(op), "expected ", argument, " to have ",
                            length, length == 1 ? " entry" : " entries", ", got ", list);
}

void wrong_dtype(const char* op, const char* subject, const char* dtypes, ScalarType got) {
  treadle::fail<ErrorKind::NotImplemented>(OpName(op), "expected ", subject, " in (", dtypes,
                                           "), got ", name_of(got));
}

}  // namespace treadle::contract
