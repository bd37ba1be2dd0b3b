// Common parts of the hand-written kernels. A family is the text of a few kernels over values
// of one dtype T; 16-bit floats are computed in float32, between a conversion before and one after.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "generated.h"
#include "launch.h"
#include "source.h"

namespace treadle_opencl {

struct Family {
  const char* name;
  const char* text;

  // A kernel of the family for a dtype that is computed in.
  Launch launch(Device& device, treadle::plugin::DType dtype, const char* kernel) const {
    const std::string key = std::string(name) + ' ' + std::to_string(static_cast<int>(dtype));
    return Launch(device, device.kernel(key, kernel, [&] {
      return prelude(static_cast<treadle_dtype>(dtype)) + text;
    }));
  }
};

// The last argument of kernels in which an item does `per` elements, and the launch of as many
// items as `elements` need, of about `work` steps each.
inline void over_elements(Launch& launch, const Device& device, int64_t elements,
                          int64_t work = 1) {
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, work));
  const int64_t per = Launch::per_item(device, elements, grain);
  launch.scalar<int64_t>(per).over((elements + per - 1) / per);
}

// The dtype that values of `dtype` are computed in.
inline treadle::plugin::DType wide(treadle::plugin::DType dtype) {
  return static_cast<treadle::plugin::DType>(
      treadle::plugin::compute_dtype(static_cast<treadle_dtype>(dtype)));
}
// The tensor, contiguous, in that dtype; an undefined one stays so.
inline treadle::plugin::Tensor widened(const treadle::plugin::Tensor& tensor) {
  return tensor.defined() ? packed_as(tensor, wide(tensor.dtype())) : tensor;
}
// A result in that dtype; converted to the one that was asked for by done().
class WideResult {
 public:
  explicit WideResult(const treadle::plugin::Tensor& out)
      : out_(out),
        wide_(wide(out.dtype()) == out.dtype()
                  ? out
                  : treadle::plugin::empty(out.sizes(), wide(out.dtype()), out.device())) {}
  const treadle::plugin::Tensor& tensor() const { return wide_; }
  void done() const {
    if (wide_.dtype() != out_.dtype()) copy_elements(wide_, out_);
  }

 private:
  treadle::plugin::Tensor out_, wide_;
};

// An optional tensor as arguments: memory, offset and whether it is there. `other` stands for one
// that is not.
inline void add_optional(Launch& launch, const treadle::plugin::Tensor& tensor,
                         const treadle::plugin::Tensor& other) {
  launch.tensor(tensor.defined() ? tensor : other).scalar<int32_t>(tensor.defined());
}
// A number as a value of the dtype.
inline void add_value(Launch& launch, const treadle::plugin::Number& number,
                      treadle::plugin::DType dtype) {
  treadle::plugin::visit_all_dtypes(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T value = number.to<T>();
    launch.bytes(&value, sizeof value);
  });
}

// The dtypes that operators are declared for, where these are not all. They stand so that each
// list is a part of one.
inline constexpr treadle::plugin::DType kDTypes[] = {
    treadle::plugin::DType::Complex64, treadle::plugin::DType::Complex128,
    treadle::plugin::DType::Float16,   treadle::plugin::DType::BFloat16,
    treadle::plugin::DType::Float32,   treadle::plugin::DType::Float64,
    treadle::plugin::DType::UInt8,     treadle::plugin::DType::UInt16,
    treadle::plugin::DType::UInt32,    treadle::plugin::DType::UInt64,
    treadle::plugin::DType::Int8,      treadle::plugin::DType::Int16,
    treadle::plugin::DType::Int32,     treadle::plugin::DType::Int64,
    treadle::plugin::DType::Bool};
using DTypes = treadle::plugin::Span<const treadle::plugin::DType>;
inline DTypes floating_dtypes() { return {kDTypes + 2, 4}; }
inline DTypes floating_and_complex_dtypes() { return {kDTypes, 6}; }
inline DTypes real_dtypes() { return {kDTypes + 2, 12}; }
inline DTypes real_and_bool_dtypes() { return {kDTypes + 2, 13}; }

// A tensor as (outer, length, inner) around a dimension.
struct Line {
  int64_t outer = 1, length = 1, inner = 1;
  Line(treadle::plugin::Ints sizes, int64_t dim) {
    const auto count = static_cast<int64_t>(sizes.size());
    if (count == 0) return;
    if (dim < 0) dim += count;
    for (int64_t d = 0; d < count; ++d) {
      const int64_t size = sizes[static_cast<size_t>(d)];
      (d < dim ? outer : d == dim ? length : inner) *= size;
    }
  }
};

}  // namespace treadle_opencl
