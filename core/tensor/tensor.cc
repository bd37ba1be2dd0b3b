// TensorImpl, the factories below all operators, and overflow-checked arithmetic on sizes and dims.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/tensor/tensor.h"

#include <bit>
#include <utility>

#include "core/device/backend.h"
#include "core/tensor/alignment.h"
#include "core/tensor/weak_tensor.h"

namespace treadle {
namespace {

// The device of a new tensor. It has no index if there is one such device.
Device place_for(ScalarType dtype, Device device) {
  if (device.is_cpu() || device.is_meta()) {
    device.index = -1;
  } else if (const Backend* const backend = backend_of(device.type)) {
    // If a type is only stored, a device needs to move bytes alone.
    check<ErrorKind::Type>(
        is_stored(dtype) || (backend->facts().dtypes >> static_cast<int>(dtype) & 1),
        "expected a dtype that tensors on ", name_of(device.type), " may have, got ",
        name_of(dtype));
  }
  return device;
}

Tensor new_tensor(size_t nbytes, IntList sizes, ScalarType dtype, Device device) {
  return Tensor(
      make_intrusive<TensorImpl>(make_intrusive<StorageImpl>(nbytes, device), dtype, sizes));
}

// The lowest and the highest element a geometry reaches, counted from the storage's start. False on
// overflow.
bool extent(IntList sizes, IntList strides, int64_t offset, int64_t* low, int64_t* high) {
  *low = *high = offset;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t span;
    if (__builtin_mul_overflow(sizes[d] - 1, strides[d], &span)) return false;
    int64_t* end = span < 0 ? low : high;
    if (__builtin_add_overflow(*end, span, end)) return false;
  }
  return true;
}

// Whether a geometry of `numel` elements stays inside a storage of `held`.
[[gnu::always_inline]] inline bool stays_inside(IntList sizes, IntList strides, int64_t offset,
                                                int64_t numel, int64_t held) {
  if (numel == 0) return offset >= 0 && offset <= held;
  int64_t low, high;
  return extent(sizes, strides, offset, &low, &high) && low >= 0 && high < held;
}

// Whole elements in a storage. A shift, as items are powers of two: a division takes longer than
// all the rest.
int64_t elements_in(const StorageImpl& storage, int64_t item) {
  return static_cast<int64_t>(storage.nbytes()) >> std::countr_zero(static_cast<uint64_t>(item));
}

// Only strided tensors have a geometry that may be changed, or seen in another way.
void require_strided(Layout layout) {
  if (layout == Layout::Strided) [[likely]]
    return;
  fail<ErrorKind::NotImplemented>("expected a strided tensor, got one of layout ", name_of(layout),
                                  "; call to_dense()");
}

[[gnu::cold]] void require_not_quantized(ScalarType dtype) {
  check<ErrorKind::NotImplemented>(!is_quantized(dtype),
                                   "expected a dtype that strided tensors may have, got ", dtype,
                                   "; quantize_per_tensor() makes quantized tensors");
}

}  // namespace

// Inference tensors pass through autograd, so that in-place changes outside the mode are noticed.
[[gnu::always_inline]] inline LayerMask TensorImpl::first_layers() const {
  LayerMask layers = inference_ ? layer_bit(Layer::Autograd) : LayerMask{0};
  if (is_stored(dtype_)) [[unlikely]] {
    require_not_quantized(dtype_);
    layers |= layer_bit(Layer::Resolve);
  }
  return layers;
}

TensorImpl::TensorImpl(Storage storage, ScalarType dtype, IntList sizes)
    : storage_(std::move(storage)), dtype_(dtype), device_(storage_->device()) {
  const size_t rank = sizes.size();
  sizes_.resize(rank);
  strides_.resize(rank);
  int64_t stride = 1, numel = 1;
  for (size_t d = rank; d-- > 0;) {
    const int64_t size = sizes[d];
    sizes_[d] = size;
    strides_[d] = stride;
    if (size < 0 || __builtin_mul_overflow(stride, size > 1 ? size : 1, &stride)) [[unlikely]]
      fail_sizes(sizes);
    numel *= size;
  }
  numel_ = numel;
  inference_ = inference_enabled();
  layers_ = first_layers();
}

TensorImpl::TensorImpl(Storage storage, ScalarType dtype, IntList sizes, IntList strides,
                       int64_t offset)
    : storage_(std::move(storage)),
      sizes_(sizes),
      strides_(strides),
      offset_(offset),
      dtype_(dtype),
      device_(storage_->device()) {
  refresh();
  inference_ = inference_enabled();
  layers_ = first_layers();
}

TensorImpl::TensorImpl(const TensorImpl& base, IntList sizes, IntList strides, int64_t offset)
    : storage_(base.storage_),
      sizes_(sizes),
      strides_(strides),
      offset_(offset),
      version_source_(base.version_source_),
      dtype_(base.dtype_),
      device_(base.device_),
      inference_(base.inference_),
      conjugated_(base.conjugated_),
      negated_(base.negated_) {
  refresh();
  layers_ = static_cast<LayerMask>(base.layers_ & layer_bit(Layer::Resolve));
  set_layer(Layer::Autograd, inference_);
}

TensorImpl::TensorImpl(Layout layout, Device device, ScalarType dtype, IntList sizes)
    : TensorImpl(StorageImpl::without_memory(0, device), dtype, sizes) {
  layout_ = layout;
  layers_ = layer_bit(Layer::Layout);
}

TensorImpl::~TensorImpl() = default;

// Python and hooks of autograd may know the tensor without owning it.
void TensorImpl::destroy() {
  bool forgotten = true;
  if (python_.owned() || (autograd_ && autograd_->weak)) [[unlikely]] {
    forgotten = (!python_.owned() || PythonSlot::release(*this)) &&
                (!autograd_ || !autograd_->weak || autograd_->weak->forget());
  }
  // The count may have grown even if `forgotten`: other code may just have taken the tensor.
  if (!forgotten || use_count() > 1) [[unlikely]] {
    release();
    return;
  }
  delete this;
}

bool TensorImpl::is_inside() const {
  if (numel_ == 0) return true;
  return storage_->has_memory() &&
         stays_inside(sizes_, strides_, offset_, numel_, elements_in(*storage_, item_size(dtype_)));
}

void* TensorImpl::storage_data_with_care() const {
  check<ErrorKind::NotImplemented>(layout_ == Layout::Strided,
                                   "expected a strided tensor, whose elements lie in one memory, "
                                   "got one of layout ",
                                   name_of(layout_), "; call to_dense()");
  check<ErrorKind::Runtime>(
      numel_ == 0 || storage_->has_memory(),
      "expected a tensor with elements in memory, got one of sizes = ", sizes(),
      " that stands for others and has none: its class answers operators "
      "by __torch_dispatch__");
  check<ErrorKind::Runtime>(is_inside(),
                            "expected a tensor whose elements are in its storage, got one of sizes "
                            "= ",
                            sizes(), ", strides = ", strides(), ", offset = ", offset_,
                            " over a storage that was made smaller, to ", storage_->nbytes(),
                            " bytes");
  return storage_->data();
}

void TensorImpl::set_geometry(IntList sizes, IntList strides, int64_t offset) {
  require_strided(layout_);
  sizes_.assign(sizes.begin(), sizes.end());
  strides_.assign(strides.begin(), strides.end());
  offset_ = offset;
  refresh();
}

void TensorImpl::set_contiguous_sizes(IntList sizes) {
  sizes_.assign(sizes.begin(), sizes.end());
  strides_ = contiguous_strides(sizes);
  refresh();
}

void TensorImpl::detach_version() {
  version_source_ = make_intrusive<StorageImpl>(size_t{0}, kMeta);
}

void TensorImpl::refresh() {
  int64_t expected = 1;
  bool contiguous = true;
  for (size_t d = sizes_.size(); d-- > 0;) {
    const int64_t size = sizes_[d];
    if (size != 1 && strides_[d] != expected) contiguous = false;
    expected *= size;
  }
  numel_ = expected;
  contiguous_ = contiguous || numel_ == 0;
}

int64_t Tensor::size(int64_t d) const {
  return impl_->sizes()[static_cast<size_t>(wrap_dim("size", d, dim()))];
}
int64_t Tensor::stride(int64_t d) const {
  return impl_->strides()[static_cast<size_t>(wrap_dim("stride", d, dim()))];
}

Tensor empty_cpu(IntList sizes, ScalarType dtype) {
  const int64_t item = item_size(dtype);
  return new_tensor(static_cast<size_t>(checked_numel(sizes, item) * item), sizes, dtype, kCPU);
}

Tensor empty_tensor(IntList sizes, ScalarType dtype, Device device) {
  const int64_t item = item_size(dtype);
  return new_tensor(static_cast<size_t>(checked_numel(sizes, item) * item), sizes, dtype,
                    place_for(dtype, device));
}

Tensor empty_strided_tensor(IntList sizes, IntList strides, ScalarType dtype, Device device) {
  check<ErrorKind::Runtime>(sizes.size() == strides.size(),
                            "expected as many strides as sizes, got sizes = ", sizes,
                            " and strides = ", strides);
  for (int64_t s : strides)
    check<ErrorKind::Runtime>(s >= 0, "expected strides >= 0, got strides = ", strides);
  const int64_t item = item_size(dtype);
  int64_t low = 0, high = -1, bytes = 0;
  if (checked_numel(sizes, item) > 0) {
    const bool ok = extent(sizes, strides, 0, &low, &high) &&
                    !__builtin_mul_overflow(high + 1, item, &bytes) && high + 1 > 0;
    check<ErrorKind::Runtime>(
        ok, "expected a geometry whose bytes can be counted in 63 bits, got sizes = ", sizes,
        " and strides = ", strides);
  }
  return Tensor(make_intrusive<TensorImpl>(
      make_intrusive<StorageImpl>(static_cast<size_t>(bytes), place_for(dtype, device)), dtype,
      sizes, strides, 0));
}

namespace {

[[gnu::always_inline]] inline void require_inside(const StorageImpl& storage, ScalarType dtype,
                                                  IntList sizes, IntList strides, int64_t offset) {
  check<ErrorKind::Runtime>(sizes.size() == strides.size(),
                            "expected as many strides as sizes, got sizes = ", sizes,
                            " and strides = ", strides);
  const int64_t item = item_size(dtype);
  const int64_t held = elements_in(storage, item);
  const int64_t numel = checked_numel(sizes, item);
  check<ErrorKind::Runtime>(
      stays_inside(sizes, strides, offset, numel, held), "expected a view inside its storage of ",
      held, " elements, got sizes = ", sizes, ", strides = ", strides, ", offset = ", offset);
}

}  // namespace

Tensor alias_as(const Tensor& base, ScalarType dtype, IntList sizes, IntList strides,
                int64_t offset) {
  require_strided(base.layout());
  if (dtype != base.dtype()) require_aligned(*base.storage(), dtype);
  require_inside(*base.storage(), dtype, sizes, strides, offset);
  auto impl = make_intrusive<TensorImpl>(base.storage(), dtype, sizes, strides, offset);
  impl->share_version_of(*base.impl());
  impl->set_inference(base.impl()->is_inference());
  impl->set_layer(Layer::Autograd, base.impl()->is_inference());
  return Tensor(std::move(impl));
}

Tensor alias_with_geometry(const Tensor& base, IntList sizes, IntList strides, int64_t offset) {
  require_strided(base.layout());
  require_inside(*base.storage(), base.dtype(), sizes, strides, offset);
  return part_of(base, sizes, strides, offset);
}

Tensor part_of(const Tensor& base, IntList sizes, IntList strides, int64_t offset) {
  return Tensor(make_intrusive<TensorImpl>(*base.impl(), sizes, strides, offset));
}

int64_t checked_numel(IntList sizes, int64_t item) {
  // `span` counts empty dimensions as one, so that strides of a tensor without elements cannot
  // overflow either.
  int64_t numel = 1, span = item;
  for (int64_t size : sizes) {
    if (size < 0 || __builtin_mul_overflow(span, size > 1 ? size : 1, &span)) [[unlikely]]
      fail_sizes(sizes);
    numel *= size;
  }
  return numel;
}

int64_t wrap_dim(std::string_view op, int64_t dim, int64_t rank) {
  const int64_t limit = rank > 0 ? rank : 1;
  check<ErrorKind::Index>(dim >= -limit && dim < limit, OpName(op),
                          "Dimension out of range (expected to be in range of [", -limit, ", ",
                          limit - 1, "], but got ", dim, ")");
  return dim < 0 ? dim + limit : dim;
}

DimVector wrap_dims(std::string_view op, OptionalIntList dims, int64_t rank, bool empty_is_all) {
  const bool all = !dims || (dims->empty() && empty_is_all);
  // Looked at before there is a list that an exception would have to destroy.
  if (!all) {
    for (const int64_t dim : *dims) wrap_dim(op, dim, rank);
  }
  DimVector wrapped;
  if (all) {
    for (int64_t d = 0; d < rank; ++d) wrapped.push_back(d);
    return wrapped;
  }
  for (const int64_t dim : *dims) {
    const int64_t d = wrap_dim(op, dim, rank);
    for (int64_t seen : wrapped) {
      check<ErrorKind::Runtime>(seen != d, OpName(op), "dim ", d,
                                " appears multiple times in the list of dims ", *dims);
    }
    wrapped.push_back(d);
  }
  return wrapped;
}

std::string to_string(const Tensor& t) {
  if (!t.defined()) return "None";
  std::string text(name_of(t.dtype()));
  text += '[';
  for (size_t d = 0; d < t.sizes().size(); ++d) {
    if (d) text += ", ";
    detail::append(text, t.sizes()[d]);
  }
  text += ']';
  return text;
}

}  // namespace treadle
