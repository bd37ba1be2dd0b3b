// Tensor: a handle to sizes, strides, an offset and a dtype over shared storage.
//
// Handles are cheap to copy, and compare by identity. A default-made handle is undefined ("None").
// The class has no operators. Those are functions in aten/ops/<name>.h, so a new operator does not
// rebuild the users of Tensor. For method syntax see aten/tensor_methods.h.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "core/base/array_ref.h"
#include "core/base/device.h"
#include "core/base/error.h"
#include "core/base/geometry.h"
#include "core/base/intrusive_ptr.h"
#include "core/base/layers.h"
#include "core/base/python_slot.h"
#include "core/base/scalar.h"
#include "core/base/scalar_type.h"
#include "core/base/small_blocks.h"
#include "core/tensor/storage.h"

namespace treadle {

class Tensor;
class WeakTensor;

// The autograd metadata of a tensor; null until needed. It is defined by autograd/.
class AutogradMetaBase : public InSmallBlock {
 public:
  virtual ~AutogradMetaBase() = default;
  virtual bool requires_grad() const = 0;
  // Whether it is a leaf that requires gradients, which is not changed in place.
  virtual bool is_recorded_leaf() const { return false; }

  // A reference for code that knows the tensor without owning it; null if there is none.
  std::shared_ptr<WeakTensor> weak;
};

class TensorImpl : public RefCounted {
 public:
  // A tensor over `storage`. Its strides are contiguous for `sizes`. Sizes are non-negative and
  // their product is checked.
  TensorImpl(Storage storage, ScalarType dtype, IntList sizes);
  // A tensor of any geometry. The caller has checked that it stays inside the storage.
  TensorImpl(Storage storage, ScalarType dtype, IntList sizes, IntList strides, int64_t offset);
  // A strided tensor over the storage of `base`, with its dtype, version count and lazy bits.
  // Neither Python nor autograd knows it.
  TensorImpl(const TensorImpl& base, IntList sizes, IntList strides, int64_t offset);
  ~TensorImpl() override;

  IntList sizes() const { return sizes_; }
  IntList strides() const { return strides_; }
  int64_t dim() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t numel() const { return numel_; }
  int64_t storage_offset() const { return offset_; }
  ScalarType dtype() const { return dtype_; }
  Device device() const { return device_; }
  Layout layout() const { return layout_; }
  LayerMask layers() const { return layers_; }
  void set_layer(Layer l, bool on) {
    layers_ = on ? static_cast<LayerMask>(layers_ | layer_bit(l))
                 : static_cast<LayerMask>(layers_ & ~layer_bit(l));
  }
  bool is_contiguous() const { return contiguous_; }
  const Storage& storage() const { return storage_; }

  // The address of the first element (of offset, not of storage). All access to a tensor's bytes
  // goes through it. RuntimeError if the storage was made too small for the tensor.
  void* data() const { return static_cast<char*>(storage_data()) + offset_ * item_size(dtype_); }
  // The same for callers that take the storage's address and an offset.
  void* storage_data() const {
    if (storage_->needs_care()) [[unlikely]]
      return storage_data_with_care();
    return storage_->address();
  }
  // Whether each element lies inside the storage. This always holds until a storage is made
  // smaller.
  bool is_inside() const;

  // New geometry over the same storage; the caller has checked that it stays inside.
  void set_geometry(IntList sizes, IntList strides, int64_t offset);
  void set_contiguous_sizes(IntList sizes);
  void set_storage(Storage storage, ScalarType dtype) {
    storage_ = std::move(storage);
    dtype_ = dtype;
    device_ = storage_->device();
    refresh_resolve();
  }

  // Whether the values are the conjugates, or the negatives, of the values in memory. Kernels never
  // see such a tensor: Layer::Resolve.
  bool is_conj() const { return conjugated_; }
  bool is_neg() const { return negated_; }
  void set_lazy(bool conjugated, bool negated) {
    conjugated_ = conjugated;
    negated_ = negated;
    refresh_resolve();
  }

  // The number of in-place writes of the values. Views share the count with their base.
  uint32_t version() const {
    return version_source_ ? version_source_->version().load() : storage_->version().load();
  }
  void bump_version() {
    (version_source_ ? version_source_ : storage_)
        ->version()
        .fetch_add(1, std::memory_order_relaxed);
  }
  // Gives this tensor (a `.data` alias) its own count.
  void detach_version();
  void share_version_of(const TensorImpl& other) { version_source_ = other.version_source_; }

  // A Python number as a 0-dim tensor. It takes part in type promotion by category only.
  bool is_wrapped_number() const { return wrapped_number_; }
  void set_wrapped_number(bool v) { wrapped_number_ = v; }
  // Made under inference mode: never recorded by autograd.
  bool is_inference() const { return inference_; }
  void set_inference(bool v) { inference_ = v; }

  AutogradMetaBase* autograd_meta() const { return autograd_.get(); }
  void set_autograd_meta(std::unique_ptr<AutogradMetaBase> meta) { autograd_ = std::move(meta); }

  // The Python object of this tensor, if one lives. The bindings manage it under the interpreter
  // lock.
  PythonSlot& python() { return python_; }

 protected:
  // A tensor of another layout than strided (core/tensor/layout_tensor.h). It has a storage without
  // memory, so that code which reads it as strided gets an error. Operators on it go to
  // Layer::Layout.
  TensorImpl(Layout layout, Device device, ScalarType dtype, IntList sizes);

 private:
  void destroy() override;
  void refresh();  // numel_ and contiguous_ from sizes_ and strides_
  void refresh_resolve() {
    set_layer(Layer::Resolve, is_stored(dtype_) || conjugated_ || negated_);
  }
  LayerMask first_layers() const;
  [[gnu::cold]] void* storage_data_with_care() const;

  Storage storage_;
  DimVector sizes_, strides_;
  int64_t offset_ = 0;
  int64_t numel_ = 0;
  std::unique_ptr<AutogradMetaBase> autograd_;
  Storage version_source_;  // null: the storage's own count
  PythonSlot python_;
  ScalarType dtype_;
  Device device_;
  Layout layout_ = Layout::Strided;
  LayerMask layers_ = 0;
  bool contiguous_ = true;
  bool wrapped_number_ = false;
  bool inference_ = false;
  bool conjugated_ = false;
  bool negated_ = false;
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(IntrusivePtr<TensorImpl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return static_cast<bool>(impl_); }
  explicit operator bool() const { return defined(); }
  TensorImpl* impl() const { return impl_.get(); }
  IntrusivePtr<TensorImpl> take_impl() && { return std::move(impl_); }
  const IntrusivePtr<TensorImpl>& impl_ptr() const { return impl_; }
  // The same tensor object (not equal values).
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }
  void reset() { impl_.reset(); }

  IntList sizes() const { return impl_->sizes(); }
  IntList strides() const { return impl_->strides(); }
  int64_t dim() const { return impl_->dim(); }
  // `d` may be negative; IndexError when out of range.
  int64_t size(int64_t d) const;
  int64_t stride(int64_t d) const;
  int64_t numel() const { return impl_->numel(); }
  int64_t element_size() const { return item_size(impl_->dtype()); }
  int64_t nbytes() const { return numel() * element_size(); }
  int64_t storage_offset() const { return impl_->storage_offset(); }
  ScalarType dtype() const { return impl_->dtype(); }
  Device device() const { return impl_->device(); }
  Layout layout() const { return impl_->layout(); }
  LayerMask layers() const { return impl_ ? impl_->layers() : LayerMask{0}; }
  // Whether Python code takes over operators on the tensor now: a mode, or its class.
  bool is_taken_over() const {
    const LayerState& state = layer_state();
    return (layers() | state.included) & ~state.excluded & layer_bit(Layer::Dispatch);
  }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_meta() const { return device().is_meta(); }
  bool is_strided() const { return layout() == Layout::Strided; }
  bool is_contiguous() const { return impl_->is_contiguous(); }
  bool is_floating_point() const { return is_floating(dtype()); }
  bool is_complex() const { return treadle::is_complex(dtype()); }
  const Storage& storage() const { return impl_->storage(); }
  uint32_t version() const { return impl_->version(); }
  bool requires_grad() const {
    return impl_ && impl_->autograd_meta() && impl_->autograd_meta()->requires_grad();
  }

  void* data() const { return impl_->data(); }
  // Typed access without TypeError, for kernels after the dtype switch.
  template <class T>
  T* data_as() const {
    return static_cast<T*>(impl_->data());
  }

 private:
  IntrusivePtr<TensorImpl> impl_;
};

using TensorList = ArrayRef<Tensor>;

// Uninitialised tensors; no operator call, no layers. Sizes are checked: negative or overflowing
// sizes are an error.
Tensor empty_cpu(IntList sizes, ScalarType dtype);
Tensor empty_tensor(IntList sizes, ScalarType dtype, Device device);
Tensor empty_strided_tensor(IntList sizes, IntList strides, ScalarType dtype, Device device);
// A new tensor over the same storage, without an autograd relation. Checks that the geometry stays
// inside the storage: RuntimeError otherwise. Shares the version count. It is lazily conjugated or
// negated if the base is.
Tensor alias_with_geometry(const Tensor& base, IntList sizes, IntList strides, int64_t offset);
// The same for a geometry whose elements are among those of `base`, which is strided and inside its
// storage: nothing is checked.
Tensor part_of(const Tensor& base, IntList sizes, IntList strides, int64_t offset);
// The bytes as elements of another dtype. Strides and offset are counted in its elements.
Tensor alias_as(const Tensor& base, ScalarType dtype, IntList sizes, IntList strides,
                int64_t offset);

// The product of non-negative sizes. RuntimeError naming the sizes when one is negative or the
// product exceeds 2^63-1 bytes of `item` each.
int64_t checked_numel(IntList sizes, int64_t item = 1);
// `dim` in [-rank, rank) (rank 0 counts as 1) -> [0, rank); IndexError "Dimension out of range
// (expected to be in range of [-2, 1], but got 5)" prefixed by the operator.
int64_t wrap_dim(std::string_view op, int64_t dim, int64_t rank);
// Wraps each dim. RuntimeError when a dim appears twice. An empty or absent list means all dims if
// `empty_is_all`.
DimVector wrap_dims(std::string_view op, OptionalIntList dims, int64_t rank, bool empty_is_all);

// "float32[2, 3]": a tensor in messages.
std::string to_string(const Tensor& t);

}  // namespace treadle
