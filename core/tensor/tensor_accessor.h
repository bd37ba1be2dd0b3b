// TensorAccessor: element access with fixed dtype and rank, which are checked once, at
// construction.
//
//   // TypeError or ValueError when it does not fit.
//   auto a = accessor<const float, 2>("trace", tensor);
//   for (int64_t i = 0; i < a.size(0); ++i) sum += a[i][i];
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle {

template <class T, int N>
class TensorAccessor {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  int64_t size(int d) const { return sizes_[d]; }
  int64_t stride(int d) const { return strides_[d]; }
  T* data() const { return data_; }
  decltype(auto) operator[](int64_t i) const {
    if constexpr (N == 1)
      return (data_[i * strides_[0]]);
    else
      return TensorAccessor<T, N - 1>(data_ + i * strides_[0], sizes_ + 1, strides_ + 1);
  }

 private:
  T* data_;
  const int64_t* sizes_;
  const int64_t* strides_;
};

// It borrows the tensor's sizes and strides, so the tensor must outlive the accessor.
template <class T, int N>
TensorAccessor<T, N> accessor(std::string_view op, const Tensor& t) {
  check<ErrorKind::Type>(t.dtype() == scalar_type_of<std::remove_const_t<T>>, OpName(op),
                         "expected a tensor of dtype ", scalar_type_of<std::remove_const_t<T>>,
                         ", got ", t.dtype());
  check<ErrorKind::Value>(t.dim() == N, OpName(op), "expected a tensor with ", N,
                          " dimensions, got ", t.dim());
  check<ErrorKind::Runtime>(!t.is_meta(), OpName(op),
                            "expected a tensor with data, got one on the meta device");
  return {t.data_as<std::remove_const_t<T>>(), t.sizes().data(), t.strides().data()};
}

}  // namespace treadle
