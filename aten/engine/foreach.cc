// Checks of lists; each looks at a tensor once.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/foreach.h"

#include "aten/engine/tensor_lists.h"
#include "aten/ops/item.h"
#include "aten/ops/select.h"
#include "core/base/error.h"

namespace treadle::foreach {
namespace {

// A 0-dim CPU tensor is taken for a number, beside any device.
void require_beside(const char* op, Device device, const Tensor& tensor) {
  const bool fits = tensor.device() == device || (tensor.is_cpu() && tensor.dim() == 0);
  check<ErrorKind::Runtime>(fits, OpName(op), "expected all tensors on one device, got ", device,
                            " and ", tensor.device());
}

}  // namespace

size_t length(const char* op, ArrayRef<NamedLength> lists) {
  const NamedLength& first = lists[0];
  check<ErrorKind::Runtime>(first.length > 0, OpName(op), "expected at least one tensor in ",
                            first.name, ", got an empty list");
  for (const NamedLength& other : lists.slice(1)) {
    check<ErrorKind::Runtime>(other.length == first.length, OpName(op),
                              "expected lists of one length, ", "got ", first.length, " in ",
                              first.name, " and ", other.length, " in ", other.name);
  }
  return first.length;
}

void require_number(const char* op, const char* name, const Tensor& tensor) {
  check<ErrorKind::Runtime>(tensor.dim() == 0, OpName(op), "expected ", name,
                            " without dimensions, got shape ", tensor.sizes());
}

std::vector<Scalar> numbers(const char* op, const char* name, const Tensor& tensor, size_t count) {
  check<ErrorKind::Runtime>(tensor.dim() == 1 && static_cast<size_t>(tensor.size(0)) == count,
                            OpName(op), "expected ", name, " of shape (", count, ",), got ",
                            tensor.sizes());
  std::vector<Scalar> values;
  values.reserve(count);
  for (size_t i = 0; i < count; ++i)
    values.push_back(aten::item(aten::select(tensor, 0, static_cast<int64_t>(i))));
  return values;
}

bool alike(const char* op, ArrayRef<TensorList> lists, ArrayRef<const Tensor*> shared,
           ArrayRef<Scalar> numbers) {
  const TensorList written = lists[0];
  require_writable(op, written);
  for (size_t i = 0; i < written.size(); ++i) {
    const Device device = written[i].device();
    for (const TensorList& list : lists.slice(1)) require_beside(op, device, list[i]);
    for (const Tensor* tensor : shared) require_beside(op, device, *tensor);
  }
  const auto kind = [](const Scalar& s) {
    return s.is_bool() ? 0 : s.is_integral() ? 1 : s.is_floating() ? 2 : 3;
  };
  for (const Scalar& number : numbers) {
    if (kind(number) != kind(numbers[0])) return false;
  }
  // Integers hold some numbers and not others.
  if (numbers.size() > 1 && is_integral(written[0].dtype(), true)) return false;
  for (const TensorList& list : lists) {
    for (size_t i = 0; i < list.size(); ++i) {
      const Tensor& t = list[i];
      const bool same = t.dtype() == list[0].dtype() && t.device() == list[0].device() &&
                        t.sizes() == written[i].sizes();
      if (!same) return false;
    }
  }
  return true;
}

Tensor on_meta(const Tensor& tensor) {
  return tensor.defined() ? empty_tensor(tensor.sizes(), tensor.dtype(), kMeta) : tensor;
}

}  // namespace treadle::foreach
