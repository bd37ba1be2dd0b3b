// Tensor: a counted handle, and Accessor: its elements by index, checked once.
//
//   Tensor y = empty({2, 3}, DType::Float32, x.device());
//   auto a = y.accessor<float, 2>();
//   a(1, 2) = 5;                      // or a[1][2]
#pragma once

#include <algorithm>
#include <functional>
#include <memory>

#include "treadle/plugin/types.hpp"

#pragma GCC visibility push(hidden)

namespace treadle::plugin {

// The elements of a tensor of N dimensions, without bounds checks.
template <class T, size_t N>
class Accessor {
 public:
  Accessor(T* data, const int64_t* sizes, const int64_t* strides) : data_(data) {
    std::copy_n(sizes, N, sizes_.begin());
    std::copy_n(strides, N, strides_.begin());
  }
  int64_t size(size_t dim) const { return sizes_[dim]; }
  int64_t stride(size_t dim) const { return strides_[dim]; }  // in elements
  T* data() const { return data_; }

  template <class... I>
  T& operator()(I... index) const {
    static_assert(sizeof...(I) == N, "one index for each dimension");
    const int64_t at[N] = {static_cast<int64_t>(index)...};
    int64_t offset = 0;
    for (size_t d = 0; d < N; ++d) offset += at[d] * strides_[d];
    return data_[offset];
  }
  decltype(auto) operator[](int64_t i) const {
    if constexpr (N == 1)
      return (data_[i * strides_[0]]);
    else
      return Accessor<T, N - 1>(data_ + i * strides_[0], sizes_.data() + 1, strides_.data() + 1);
  }

 private:
  T* data_;
  std::array<int64_t, N> sizes_, strides_;
};

// A reference to a tensor. Copies refer to the same tensor. An undefined one refers to none. On an
// undefined one, every function but defined() raises RuntimeError.
class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& other) : handle_(other.handle_) {
    if (handle_ != nullptr) api().retain(handle_);
  }
  Tensor(Tensor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Tensor() {
    if (handle_ != nullptr) detail::started->release(handle_);
  }

  // Takes over the caller's reference.
  static Tensor take(treadle_tensor* handle) {
    Tensor t;
    t.handle_ = handle;
    return t;
  }
  // A new reference to a borrowed tensor.
  static Tensor borrow(treadle_tensor* handle) {
    if (handle != nullptr) api().retain(handle);
    return take(handle);
  }
  // Gives up the reference without releasing it.
  treadle_tensor* give() { return std::exchange(handle_, nullptr); }
  treadle_tensor* handle() const { return handle_; }

  bool defined() const { return handle_ != nullptr; }
  DType dtype() const { return static_cast<DType>(api().dtype(get())); }
  Device device() const { return api().device(get()); }
  Layout layout() const { return static_cast<Layout>(api().layout(get())); }
  int64_t dim() const { return api().dim(get()); }
  Ints sizes() const { return {api().sizes(get()), static_cast<size_t>(dim())}; }
  Ints strides() const { return {api().strides(get()), static_cast<size_t>(dim())}; }
  // The size or stride of one dimension. A negative one counts from the end. IndexError if there is
  // no such dimension.
  int64_t size(int64_t d) const { return sizes()[position(d)]; }
  int64_t stride(int64_t d) const { return strides()[position(d)]; }
  int64_t numel() const { return api().numel(get()); }
  bool is_contiguous() const { return api().is_contiguous(get()) != 0; }

  // The result of the backend's allocate(), and the offset of the first element in it, in elements.
  void* storage() const { return api().storage(get()); }
  size_t storage_nbytes() const { return api().storage_nbytes(get()); }
  int64_t storage_offset() const { return api().storage_offset(get()); }
  // The address of the first element, of a tensor whose memory the CPU sees.
  void* data() const { return api().data(get()); }
  // The same; TypeError if the dtype is not T's.
  template <class T>
  T* data() const {
    using Element = std::remove_const_t<T>;
    check(dtype() == dtype_of<Element>(), ErrorKind::Type, "data: expected a tensor of ",
          dtype_of<Element>(), ", got ", dtype());
    return static_cast<T*>(data());
  }
  // The elements by index, of a tensor whose memory the CPU sees. TypeError if the dtype or the
  // number of dimensions differs.
  template <class T, size_t N>
  Accessor<T, N> accessor() const {
    check(dim() == static_cast<int64_t>(N), ErrorKind::Type, "accessor: expected a tensor of ", N,
          " dimensions, got shape ", sizes());
    return Accessor<T, N>(data<T>(), sizes().data(), strides().data());
  }

  // Another geometry over the same memory, in elements. RuntimeError if it would reach outside the
  // memory.
  Tensor as_strided(Ints sizes, Ints strides, int64_t offset) const {
    check(sizes.size() == strides.size(), ErrorKind::Value,
          "as_strided: expected a stride for each size, got sizes ", sizes, " and strides ",
          strides);
    treadle_tensor* view = nullptr;
    succeed(api().as_strided(get(), sizes.data(), strides.data(),
                             static_cast<int32_t>(sizes.size()), offset, &view));
    return take(view);
  }

 private:
  treadle_tensor* get() const {
    check(handle_ != nullptr, ErrorKind::Runtime, "expected a tensor, got an undefined one");
    return handle_;
  }
  size_t position(int64_t d) const {
    const int64_t n = dim();
    check(d >= -n && d < n, ErrorKind::Index, "size: expected a dimension in [", -n, ", ", n,
          "), got ", d);
    return static_cast<size_t>(d < 0 ? d + n : d);
  }

  treadle_tensor* handle_ = nullptr;
};

// A new contiguous tensor with uninitialised elements.
inline Tensor empty(Ints sizes, DType dtype, Device device) {
  treadle_tensor* tensor = nullptr;
  succeed(api().empty(sizes.data(), nullptr, static_cast<int32_t>(sizes.size()),
                      static_cast<treadle_dtype>(dtype), device, &tensor));
  return Tensor::take(tensor);
}
// The same with strides, in elements.
inline Tensor empty_strided(Ints sizes, Ints strides, DType dtype, Device device) {
  check(sizes.size() == strides.size(), ErrorKind::Value,
        "empty_strided: expected a stride for each size, got sizes ", sizes, " and strides ",
        strides);
  treadle_tensor* tensor = nullptr;
  succeed(api().empty(sizes.data(), strides.data(), static_cast<int32_t>(sizes.size()),
                      static_cast<treadle_dtype>(dtype), device, &tensor));
  return Tensor::take(tensor);
}
// With the shape, dtype and device of another tensor; contiguous.
inline Tensor empty_like(const Tensor& other) {
  return empty(other.sizes(), other.dtype(), other.device());
}
// Over memory owned elsewhere, contiguous. `release` is called once when no tensor needs it any
// more, from any thread.
inline Tensor from_memory(void* storage, Ints sizes, DType dtype, Device device,
                          std::function<void()> release) {
  auto keeper = std::make_unique<std::function<void()>>(std::move(release));
  treadle_tensor* tensor = nullptr;
  succeed(api().from_memory(
      storage, sizes.data(), static_cast<int32_t>(sizes.size()), static_cast<treadle_dtype>(dtype),
      device,
      [](void* context) {
        const std::unique_ptr<std::function<void()>> f(
            static_cast<std::function<void()>*>(context));
        if (*f) guarded([&] { (*f)(); });
      },
      keeper.get(), &tensor));
  keeper.release();
  return Tensor::take(tensor);
}

}  // namespace treadle::plugin

#pragma GCC visibility pop
