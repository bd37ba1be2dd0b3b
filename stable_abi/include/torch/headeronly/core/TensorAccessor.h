// HeaderOnlyTensorAccessor: the elements of a tensor by their indices, without checks.
//
//   HeaderOnlyTensorAccessor<float, 2> a(x.mutable_data_ptr<float>(), x.sizes().data(),
//                                        x.strides().data());
//   a[1][2] = 3;
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <torch/headeronly/macros/Macros.h>
#include <torch/headeronly/util/HeaderOnlyArrayRef.h>

namespace torch::headeronly {

template <typename T>
struct DefaultPtrTraits {
  using PtrType = T*;
};

template <typename T, size_t N, template <typename> class PtrTraits = DefaultPtrTraits,
          typename index_t = int64_t>
class HeaderOnlyTensorAccessor {
 public:
  using PtrType = typename PtrTraits<T>::PtrType;

  C10_HOST_DEVICE HeaderOnlyTensorAccessor(PtrType data, const index_t* sizes,
                                           const index_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}

  HeaderOnlyArrayRef<index_t> sizes() const { return {sizes_, N}; }
  HeaderOnlyArrayRef<index_t> strides() const { return {strides_, N}; }
  C10_HOST_DEVICE index_t size(index_t i) const { return sizes_[i]; }
  C10_HOST_DEVICE index_t stride(index_t i) const { return strides_[i]; }
  C10_HOST_DEVICE PtrType data() const { return data_; }
  C10_HOST_DEVICE decltype(auto) operator[](index_t i) const {
    if constexpr (N == 1)
      return (data_[strides_[0] * i]);
    else
      return HeaderOnlyTensorAccessor<T, N - 1, PtrTraits, index_t>(data_ + strides_[0] * i,
                                                                    sizes_ + 1, strides_ + 1);
  }

 private:
  PtrType data_;
  const index_t *sizes_, *strides_;
};

}  // namespace torch::headeronly
