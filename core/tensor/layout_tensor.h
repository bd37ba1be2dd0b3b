// Tensors of other layouts than strided. Such a tensor is made of strided tensors, its parts, and
// of whole numbers, its fields: a sparse_coo tensor of indices and values, and of whether it is
// coalesced.
//
// The parts are what autograd records, devices hold and files keep, so all of that works for a new
// layout without more code. A layout says what its parts and fields are in a LayoutInfo.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace treadle {

// The parts and the fields of one tensor.
struct LayoutContents {
  std::vector<Tensor> parts;
  std::vector<int64_t> fields;
};

class LayoutTensorImpl final : public TensorImpl {
 public:
  // The dtype and the device are those of the layout's part of values. The caller has checked that
  // the contents fit each other and `sizes`.
  LayoutTensorImpl(Layout layout, IntList sizes, LayoutContents contents);

  // The contents as they are now. Another thread may replace them by take().
  std::shared_ptr<const LayoutContents> contents() const { return contents_.load(); }
  // Replaces the contents: a write in place. Their dtype and device are those of the tensor.
  void take(LayoutContents contents);

  // An object that kernels made of the contents to use again, as a packed weight. It is theirs to
  // tell whether it was made of the contents there are now.
  std::shared_ptr<const void> prepared() const { return prepared_.load(); }
  void prepare(std::shared_ptr<const void> made) { prepared_.store(std::move(made)); }

 private:
  std::atomic<std::shared_ptr<const LayoutContents>> contents_;
  std::atomic<std::shared_ptr<const void>> prepared_;
};

// The description of a layout: names, and the rule that its contents keep.
struct LayoutInfo {
  std::vector<std::string> parts, fields;  // their names
  size_t values = 0;  // the part of the elements: it has the dtype, and autograd records it
  // RuntimeError unless the contents are those of a tensor of these sizes. What comes from a file
  // or from another program is checked so. `op` is for the error.
  std::function<void(const char* op, IntList sizes, const LayoutContents& contents)> check;
  // The dtype that programs see for this dtype of the values, where it is another.
  ScalarType (*shown_dtype)(ScalarType values) = nullptr;
};
// `info` lives for as long as the program.
void describe_layout(Layout layout, const LayoutInfo& info);
// RuntimeError for strided, and for a layout that nobody described.
const LayoutInfo& info_of(Layout layout);

Tensor layout_tensor(Layout layout, IntList sizes, LayoutContents contents);
// The contents of a tensor of another layout than strided.
std::shared_ptr<const LayoutContents> contents_of(const Tensor& t);
// The part that holds the elements.
Tensor values_of(const Tensor& t);
// A tensor of the same layout, sizes and fields, with each part replaced by what `change` makes of
// it.
template <class F>
Tensor with_parts(const Tensor& t, F&& change) {
  LayoutContents contents = *contents_of(t);
  for (size_t i = 0; i < contents.parts.size(); ++i) {
    contents.parts[i] = change(contents.parts[i], i == info_of(t.layout()).values);
  }
  return layout_tensor(t.layout(), t.sizes(), std::move(contents));
}
// The same with other values.
Tensor with_values(const Tensor& t, const Tensor& values);

}  // namespace treadle
