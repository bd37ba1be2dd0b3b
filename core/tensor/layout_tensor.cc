// Tensors of other layouts, and the table of what layouts are.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/tensor/layout_tensor.h"

#include <array>
#include <atomic>

namespace treadle {
namespace {

std::array<std::atomic<const LayoutInfo*>, kMaxLayouts> infos;

const Tensor& values_in(Layout layout, const LayoutContents& contents) {
  return contents.parts.at(info_of(layout).values);
}

}  // namespace

LayoutTensorImpl::LayoutTensorImpl(Layout layout, IntList sizes, LayoutContents contents)
    : TensorImpl(layout, values_in(layout, contents).device(), values_in(layout, contents).dtype(),
                 sizes),
      contents_(std::make_shared<const LayoutContents>(std::move(contents))) {}

void LayoutTensorImpl::take(LayoutContents contents) {
  const Tensor& values = values_in(layout(), contents);
  check_internal(values.dtype() == dtype() && values.device() == device(),
                 "contents of the tensor's dtype and device");
  contents_.store(std::make_shared<const LayoutContents>(std::move(contents)));
  prepared_.store(nullptr);
  bump_version();
}

void describe_layout(Layout layout, const LayoutInfo& info) {
  infos[static_cast<size_t>(layout)].store(&info, std::memory_order_release);
}

const LayoutInfo& info_of(Layout layout) {
  const LayoutInfo* const info = infos[static_cast<size_t>(layout)].load(std::memory_order_acquire);
  check<ErrorKind::Runtime>(info != nullptr, "expected a layout of tensors with parts, got ",
                            name_of(layout));
  return *info;
}

Tensor layout_tensor(Layout layout, IntList sizes, LayoutContents contents) {
  return Tensor(make_intrusive<LayoutTensorImpl>(layout, sizes, std::move(contents)));
}

std::shared_ptr<const LayoutContents> contents_of(const Tensor& t) {
  check<ErrorKind::Runtime>(!t.is_strided(),
                            "expected a tensor of another layout, got a strided one");
  return static_cast<const LayoutTensorImpl*>(t.impl())->contents();
}

Tensor values_of(const Tensor& t) { return contents_of(t)->parts.at(info_of(t.layout()).values); }

Tensor with_values(const Tensor& t, const Tensor& values) {
  return with_parts(t,
                    [&](const Tensor& part, bool is_values) { return is_values ? values : part; });
}

}  // namespace treadle
