// Operators of the library by functions of C++, and loops on its threads.
//
// Any other operator is called by its name: detail::call_operator<Tensor>("aten::exp", "", x).
// Arguments are those of its schema, all of them, in order.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <tuple>
#include <utility>

#include <torch/csrc/inductor/aoti_torch/generated/c_shim_aten.h>
#include <torch/csrc/stable/stableivalue_conversions.h>

HIDDEN_NAMESPACE_BEGIN(torch, stable, detail)

template <typename R>
struct Taken {
  static constexpr size_t count = 1;
  static R from(StableIValue* stack) { return to<R>(stack[0]); }
};
template <typename... Rs>
struct Taken<std::tuple<Rs...>> {
  static constexpr size_t count = sizeof...(Rs);
  static std::tuple<Rs...> from(StableIValue* stack) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<Rs...>{to<Rs>(stack[I])...};
    }
    (std::index_sequence_for<Rs...>());
  }
};

template <typename R, typename... Args>
R call_operator(const char* name, const char* overload, const Args&... args) {
  constexpr size_t kResults = Taken<R>::count, kArguments = sizeof...(Args);
  std::array<StableIValue, (kArguments > kResults ? kArguments : kResults)> stack{
      Conversion<Args>::from(args)...};
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_10_0
  STABLE_TORCH_ERROR_CODE_CHECK(
      torch_call_dispatcher(name, overload, stack.data(), TORCH_ABI_VERSION));
#else
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_call_dispatcher(name, overload, stack.data()));
#endif
  return Taken<R>::from(stack.data());
}

// The result of a function of the ABI that makes a tensor.
template <typename F>
Tensor made_by(F&& make) {
  AtenTensorHandle result = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(make(&result));
  return Tensor(result);
}

HIDDEN_NAMESPACE_END(torch, stable, detail)

HIDDEN_NAMESPACE_BEGIN(torch, stable)

using DeleterFnPtr = void (*)(void*);
using torch::headeronly::MemoryFormat;

// ---- tensors of the same kind

inline Tensor empty_like(const Tensor& self) {
  constexpr auto none = std::nullopt;
  return detail::call_operator<Tensor>("aten::empty_like", "", self, none, none, none, none, none);
}
inline Tensor clone(const Tensor& self) {
  return detail::call_operator<Tensor>("aten::clone", "", self, std::nullopt);
}

// ---- writing

inline Tensor fill_(const Tensor& self, double value) {
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_aten_fill__Scalar(self.get(), value));
  return self;
}
inline Tensor zero_(Tensor& self) { return detail::call_operator<Tensor>("aten::zero_", "", self); }
inline Tensor copy_(Tensor& self, const Tensor& src,
                    std::optional<bool> non_blocking = std::nullopt) {
  return detail::call_operator<Tensor>("aten::copy_", "", self, src, non_blocking.value_or(false));
}

// ---- views

inline Tensor narrow(Tensor& self, int64_t dim, int64_t start, int64_t length) {
  return detail::made_by(
      [&](auto* r) { return aoti_torch_aten_narrow(self.get(), dim, start, length, r); });
}
inline Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  return detail::call_operator<Tensor>("aten::transpose", "int", self, dim0, dim1);
}
inline Tensor flatten(const Tensor& self, int64_t start_dim = 0, int64_t end_dim = -1) {
  return detail::call_operator<Tensor>("aten::flatten", "using_ints", self, start_dim, end_dim);
}
inline Tensor unsqueeze(const Tensor& self, int64_t dim) {
  return detail::call_operator<Tensor>("aten::unsqueeze", "", self, dim);
}
inline Tensor squeeze(const Tensor& self, int64_t dim) {
  return detail::call_operator<Tensor>("aten::squeeze", "dim", self, dim);
}
inline Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  return detail::call_operator<Tensor>("aten::select", "int", self, dim, index);
}

// ---- values

inline Tensor matmul(const Tensor& self, const Tensor& other) {
  return detail::call_operator<Tensor>("aten::matmul", "", self, other);
}
inline Tensor amax(const Tensor& self, IntHeaderOnlyArrayRef dims, bool keepdim = false) {
  return detail::made_by([&](auto* r) {
    return aoti_torch_aten_amax(self.get(), dims.data(), static_cast<int64_t>(dims.size()), keepdim,
                                r);
  });
}
inline Tensor amax(const Tensor& self, int64_t dim, bool keepdim = false) {
  return amax(self, IntHeaderOnlyArrayRef(&dim, size_t{1}), keepdim);
}
// `pad` has pairs, from the last dimension on.
inline Tensor pad(const Tensor& self, IntHeaderOnlyArrayRef pad,
                  const std::string& mode = "constant", double value = 0.0) {
  return detail::made_by([&](auto* r) {
    return aoti_torch_aten_pad(self.get(), pad.data(), static_cast<int64_t>(pad.size()),
                               mode.c_str(), &value, r);
  });
}

#if TORCH_FEATURE_VERSION < TORCH_VERSION_2_10_0

HIDDEN_NAMESPACE_BEGIN(detail)
template <typename F>
Tensor new_of(const Tensor& self, IntHeaderOnlyArrayRef size, std::optional<ScalarType> dtype,
              F&& make) {
  int32_t number = number_of(dtype ? *dtype : self.scalar_type());
  int32_t layout = number_of(self.layout()), device = number_of(self.device().type());
  return made_by([&](auto* r) {
    return make(self.get(), size.data(), static_cast<int64_t>(size.size()), &number, &layout,
                &device, self.get_device_index(), nullptr, r);
  });
}
HIDDEN_NAMESPACE_END(detail)

inline Tensor new_empty(const Tensor& self, IntHeaderOnlyArrayRef size,
                        std::optional<ScalarType> dtype = std::nullopt) {
  return detail::new_of(self, size, dtype, &aoti_torch_aten_new_empty);
}
inline Tensor new_zeros(const Tensor& self, IntHeaderOnlyArrayRef size,
                        std::optional<ScalarType> dtype = std::nullopt) {
  return detail::new_of(self, size, dtype, &aoti_torch_aten_new_zeros);
}

#else

// ---- loops: f(begin, end) for pieces of a range of about `grain_size`, on several threads

template <typename F>
void parallel_for(int64_t begin, int64_t end, int64_t grain_size, const F& f) {
  const auto call = [](int64_t from, int64_t to, void* context) {
    (*static_cast<const F*>(context))(from, to);
  };
  STABLE_TORCH_ERROR_CODE_CHECK(torch_parallel_for(
      begin, end, grain_size, call, const_cast<void*>(static_cast<const void*>(&f))));
}
inline uint32_t get_num_threads() {
  uint32_t count = 0;
  STABLE_TORCH_ERROR_CODE_CHECK(torch_get_num_threads(&count));
  return count;
}

// ---- new tensors

inline Tensor empty(IntHeaderOnlyArrayRef size, std::optional<ScalarType> dtype = std::nullopt,
                    std::optional<Layout> layout = std::nullopt,
                    std::optional<Device> device = std::nullopt,
                    std::optional<bool> pin_memory = std::nullopt,
                    std::optional<MemoryFormat> memory_format = std::nullopt) {
  return detail::call_operator<Tensor>("aten::empty", "memory_format", size, dtype, layout, device,
                                       pin_memory, memory_format);
}
inline Tensor new_empty(const Tensor& self, IntHeaderOnlyArrayRef size,
                        std::optional<ScalarType> dtype = std::nullopt,
                        std::optional<Layout> layout = std::nullopt,
                        std::optional<Device> device = std::nullopt,
                        std::optional<bool> pin_memory = std::nullopt) {
  return detail::call_operator<Tensor>("aten::new_empty", "", self, size, dtype, layout, device,
                                       pin_memory);
}
inline Tensor new_zeros(const Tensor& self, IntHeaderOnlyArrayRef size,
                        std::optional<ScalarType> dtype = std::nullopt,
                        std::optional<Layout> layout = std::nullopt,
                        std::optional<Device> device = std::nullopt,
                        std::optional<bool> pin_memory = std::nullopt) {
  return detail::call_operator<Tensor>("aten::new_zeros", "", self, size, dtype, layout, device,
                                       pin_memory);
}
inline Tensor full(IntHeaderOnlyArrayRef size, double fill_value,
                   std::optional<ScalarType> dtype = std::nullopt,
                   std::optional<Layout> layout = std::nullopt,
                   std::optional<Device> device = std::nullopt,
                   std::optional<bool> pin_memory = std::nullopt) {
  int32_t numbers[4] = {};
  int32_t* given[4] = {};
  const auto give = [&](int i, int32_t number) {
    numbers[i] = number;
    given[i] = &numbers[i];
  };
  if (dtype) give(0, detail::number_of(*dtype));
  if (layout) give(1, detail::number_of(*layout));
  if (device) give(2, detail::number_of(device->type()));
  if (pin_memory) give(3, *pin_memory);
  return detail::made_by([&](auto* r) {
    return aoti_torch_aten_full(size.data(), static_cast<int64_t>(size.size()), fill_value,
                                given[0], given[1], given[2], device ? device->index() : 0,
                                given[3], r);
  });
}

// A tensor over memory that the caller keeps.
inline Tensor from_blob(void* data, IntHeaderOnlyArrayRef sizes, IntHeaderOnlyArrayRef strides,
                        Device device, ScalarType dtype, int64_t storage_offset = 0,
                        Layout layout = Layout::Strided) {
  return detail::made_by([&](auto* r) {
    return aoti_torch_create_tensor_from_blob_v2(
        data, static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(), storage_offset,
        detail::number_of(dtype), detail::number_of(device.type()), device.index(), r,
        detail::number_of(layout), nullptr, 0);
  });
}
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_11_0
// A tensor over memory; deleter(data) is called when the last tensor on it is gone.
template <typename F, std::enable_if_t<std::is_invocable_v<F, void*>, int> = 0>
Tensor from_blob(void* data, IntHeaderOnlyArrayRef sizes, IntHeaderOnlyArrayRef strides,
                 Device device, ScalarType dtype, F deleter, int64_t storage_offset = 0,
                 Layout layout = Layout::Strided) {
  auto kept = std::make_unique<F>(std::move(deleter));
  const auto call = [](void* memory, void* context) {
    const std::unique_ptr<F> function(static_cast<F*>(context));
    (*function)(memory);
  };
  Tensor tensor = detail::made_by([&](auto* r) {
    return torch_from_blob(data, static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(),
                           storage_offset, detail::number_of(dtype),
                           detail::number_of(device.type()), device.index(), r,
                           detail::number_of(layout), nullptr, 0, call, kept.get());
  });
  kept.release();
  return tensor;
}
#endif

// ---- shapes, kinds

inline Tensor reshape(const Tensor& self, IntHeaderOnlyArrayRef shape) {
  return detail::call_operator<Tensor>("aten::reshape", "", self, shape);
}
inline Tensor view(const Tensor& self, IntHeaderOnlyArrayRef size) {
  return detail::call_operator<Tensor>("aten::view", "", self, size);
}
inline Tensor view(const Tensor& self, ScalarType dtype) {
  return detail::call_operator<Tensor>("aten::view", "dtype", self, dtype);
}
inline Tensor permute(const Tensor& self, IntHeaderOnlyArrayRef dims) {
  return detail::call_operator<Tensor>("aten::permute", "", self, dims);
}
inline Tensor contiguous(const Tensor& self,
                         MemoryFormat memory_format = MemoryFormat::Contiguous) {
  return detail::call_operator<Tensor>("aten::contiguous", "", self, memory_format);
}
inline Tensor to(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt,
                 std::optional<Layout> layout = std::nullopt,
                 std::optional<Device> device = std::nullopt,
                 std::optional<bool> pin_memory = std::nullopt, bool non_blocking = false,
                 bool copy = false, std::optional<MemoryFormat> memory_format = std::nullopt) {
  return detail::call_operator<Tensor>("aten::to", "dtype_layout", self, dtype, layout, device,
                                       pin_memory, non_blocking, copy, memory_format);
}
inline Tensor to(const Tensor& self, Device device, bool non_blocking = false, bool copy = false) {
  return to(self, std::nullopt, std::nullopt, std::optional<Device>(device), std::nullopt,
            non_blocking, copy);
}
inline bool is_pinned(const Tensor& self) {
  return detail::call_operator<bool>("aten::is_pinned", "", self, std::nullopt);
}

// ---- values

inline Tensor sum(const Tensor& self, std::optional<IntHeaderOnlyArrayRef> dim = std::nullopt,
                  bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt) {
  return detail::call_operator<Tensor>("aten::sum", "dim_IntList", self, dim, keepdim, dtype);
}
inline Tensor& sum_out(Tensor& out, const Tensor& self,
                       std::optional<IntHeaderOnlyArrayRef> dim = std::nullopt,
                       bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt) {
  detail::call_operator<Tensor>("aten::sum", "IntList_out", self, dim, keepdim, dtype, out);
  return out;
}
inline Tensor subtract(const Tensor& self, const Tensor& other, double alpha = 1.0) {
  return detail::made_by(
      [&](auto* r) { return aoti_torch_aten_subtract_Tensor(self.get(), other.get(), alpha, r); });
}
inline Tensor bitwise_and(const Tensor& self, const Tensor& other) {
  return detail::call_operator<Tensor>("aten::bitwise_and", "Tensor", self, other);
}
inline Tensor bitwise_or(const Tensor& self, const Tensor& other) {
  return detail::call_operator<Tensor>("aten::bitwise_or", "Tensor", self, other);
}
inline Tensor bitwise_left_shift(const Tensor& self, const Tensor& other) {
  return detail::call_operator<Tensor>("aten::bitwise_left_shift", "Tensor", self, other);
}
inline Tensor bitwise_right_shift(const Tensor& self, const Tensor& other) {
  return detail::call_operator<Tensor>("aten::bitwise_right_shift", "Tensor", self, other);
}
inline Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  return detail::call_operator<Tensor>("aten::index_select", "", self, dim, index);
}
inline Tensor floor_divide(const Tensor& self, const Tensor& other) {
  return detail::call_operator<Tensor>("aten::floor_divide", "", self, other);
}
inline std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim = -1,
                                       bool descending = false) {
  return detail::call_operator<std::tuple<Tensor, Tensor>>("aten::sort", "", self, dim, descending);
}
inline std::tuple<Tensor, Tensor> sort(const Tensor& self, std::optional<bool> stable,
                                       int64_t dim = -1, bool descending = false) {
  return detail::call_operator<std::tuple<Tensor, Tensor>>("aten::sort", "stable", self, stable,
                                                           dim, descending);
}

#endif

HIDDEN_NAMESPACE_END(torch, stable)
