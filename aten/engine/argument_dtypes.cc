// The error messages. A correct call needs none of this code.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/argument_dtypes.h"

namespace treadle::contract {
namespace {

// "int64 or int32"; "float64, float32 or bool".
std::string names_of(uint32_t allowed) {
  std::vector<ScalarType> dtypes;
  for (int i = kNumScalarTypes - 1; i >= 0; --i)
    if (allowed >> i & 1) dtypes.push_back(static_cast<ScalarType>(i));
  std::string text;
  for (size_t i = 0; i < dtypes.size(); ++i)
    text += str(i == 0 ? "" : i + 1 == dtypes.size() ? " or " : ", ", dtypes[i]);
  return text;
}

std::string place_in(const char* argument, size_t i) { return str(argument, "[", i, "]"); }

}  // namespace

void wrong_argument_dtype(const char* op, const std::string& argument, uint32_t allowed,
                          ScalarType got) {
  fail<ErrorKind::Runtime>(OpName(op), "expected ", argument, " of dtype ", names_of(allowed),
                           ", got ", got);
}

void two_dtypes(const char* op, const char* first, ScalarType expected, const char* argument,
                ScalarType got) {
  fail<ErrorKind::Runtime>(OpName(op), "expected ", first, " and ", argument, " of one dtype, got ",
                           expected, " and ", got);
}

void require_dtype(const char* op, const char* argument, TensorList list, uint32_t allowed) {
  for (size_t i = 0; i < list.size(); ++i) {
    const Tensor& t = list[i];
    if (t.defined() && !has_dtype(allowed, t.dtype())) [[unlikely]]
      wrong_argument_dtype(op, place_in(argument, i), allowed, t.dtype());
  }
}

void require_device(const char* op, const char* argument, TensorList list, Device device) {
  for (size_t i = 0; i < list.size(); ++i) {
    const Tensor& t = list[i];
    if (!t.defined() || t.device() == device || (t.numel() == 1 && t.is_cpu())) continue;
    fail<ErrorKind::Runtime>(OpName(op), "expected all tensors on one device, got ",
                             place_in(argument, i), " on ", t.device(), " beside ", device);
  }
}

}  // namespace treadle::contract
