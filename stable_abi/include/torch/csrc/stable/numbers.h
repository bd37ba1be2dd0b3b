// The numbers by which the library knows dtypes, layouts, memory formats, devices and tags: asked of
// it, as those of another version may differ.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/stable/c/shim.h>
#include <torch/csrc/stable/macros.h>
#include <torch/headeronly/core/DeviceType.h>
#include <torch/headeronly/core/Layout.h>
#include <torch/headeronly/core/MemoryFormat.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/core/enum_tag.h>
#include <torch/headeronly/util/Exception.h>

#define TREADLE_DTYPE_NUMBERS(X)                       \
  X(Byte, aoti_torch_dtype_uint8)                      \
  X(Char, aoti_torch_dtype_int8)                       \
  X(Short, aoti_torch_dtype_int16)                     \
  X(Int, aoti_torch_dtype_int32)                       \
  X(Long, aoti_torch_dtype_int64)                      \
  X(Half, aoti_torch_dtype_float16)                    \
  X(Float, aoti_torch_dtype_float32)                   \
  X(Double, aoti_torch_dtype_float64)                  \
  X(ComplexHalf, aoti_torch_dtype_complex32)           \
  X(ComplexFloat, aoti_torch_dtype_complex64)          \
  X(ComplexDouble, aoti_torch_dtype_complex128)        \
  X(Bool, aoti_torch_dtype_bool)                       \
  X(BFloat16, aoti_torch_dtype_bfloat16)               \
  X(Float8_e5m2, aoti_torch_dtype_float8_e5m2)         \
  X(Float8_e4m3fn, aoti_torch_dtype_float8_e4m3fn)     \
  X(Float8_e5m2fnuz, aoti_torch_dtype_float8_e5m2fnuz) \
  X(Float8_e4m3fnuz, aoti_torch_dtype_float8_e4m3fnuz) \
  X(UInt16, aoti_torch_dtype_uint16)                   \
  X(UInt32, aoti_torch_dtype_uint32)                   \
  X(UInt64, aoti_torch_dtype_uint64)
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_11_0
#define TREADLE_DTYPE_NUMBERS_2_11(X)           \
  X(Float8_e8m0fnu, torch_dtype_float8_e8m0fnu) \
  X(Float4_e2m1fn_x2, torch_dtype_float4_e2m1fn_x2)
#else
#define TREADLE_DTYPE_NUMBERS_2_11(X)
#endif
#define TREADLE_LAYOUT_NUMBERS(X)            \
  X(Strided, aoti_torch_layout_strided)      \
  X(Sparse, aoti_torch_layout_sparse_coo)    \
  X(SparseCsr, aoti_torch_layout_sparse_csr) \
  X(SparseCsc, aoti_torch_layout_sparse_csc) \
  X(SparseBsr, aoti_torch_layout_sparse_bsr) \
  X(SparseBsc, aoti_torch_layout_sparse_bsc) \
  X(Mkldnn, aoti_torch_layout__mkldnn)       \
  X(Jagged, aoti_torch_layout_jagged)
#define TREADLE_FORMAT_NUMBERS(X)                           \
  X(Contiguous, aoti_torch_memory_format_contiguous_format) \
  X(Preserve, aoti_torch_memory_format_preserve_format)     \
  X(ChannelsLast, aoti_torch_memory_format_channels_last)   \
  X(ChannelsLast3d, aoti_torch_memory_format_channels_last_3d)
#define TREADLE_DEVICE_NUMBERS(X)      \
  X(CPU, aoti_torch_device_type_cpu)   \
  X(CUDA, aoti_torch_device_type_cuda) \
  X(Meta, aoti_torch_device_type_meta) \
  X(XPU, aoti_torch_device_type_xpu)   \
  X(MPS, aoti_torch_device_type_mps)   \
  X(PrivateUse1, aoti_torch_device_type_privateuse1)

HIDDEN_NAMESPACE_BEGIN(torch, stable, detail)

[[noreturn]] inline void throw_number(const char* what, int number) {
  throw std::runtime_error(std::string("expected a ") + what + " of the stable ABI, got number " +
                           std::to_string(number));
}

// number_of(value), and the value of a number.
#define TREADLE_TO(name, function) \
  case Enum::name:                 \
    return function();
#define TREADLE_FROM(name, function) \
  if (number == function()) return Enum::name;
#define TREADLE_CONVERSIONS(EnumType, from_number, what, LIST) \
  inline int32_t number_of(EnumType value) {                   \
    using Enum = EnumType;                                     \
    switch (value) {                                           \
      LIST(TREADLE_TO)                                         \
      default:                                                 \
        throw_number(what, static_cast<int>(value));           \
    }                                                          \
  }                                                            \
  inline EnumType from_number(int32_t number) {                \
    using Enum = EnumType;                                     \
    LIST(TREADLE_FROM)                                         \
    throw_number(what, number);                                \
  }
#define TREADLE_ALL_DTYPES(X) TREADLE_DTYPE_NUMBERS(X) TREADLE_DTYPE_NUMBERS_2_11(X)
TREADLE_CONVERSIONS(torch::headeronly::ScalarType, dtype_of, "dtype", TREADLE_ALL_DTYPES)
TREADLE_CONVERSIONS(torch::headeronly::Layout, layout_of, "layout", TREADLE_LAYOUT_NUMBERS)
TREADLE_CONVERSIONS(torch::headeronly::MemoryFormat, memory_format_of, "memory format",
                    TREADLE_FORMAT_NUMBERS)
TREADLE_CONVERSIONS(torch::headeronly::DeviceType, device_type_of, "kind of device",
                    TREADLE_DEVICE_NUMBERS)
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_12_0
inline int32_t number_of(torch::headeronly::Tag tag) {
  switch (tag) {
#define TREADLE_TAG(name)            \
  case torch::headeronly::Tag::name: \
    return torch_tag_##name();
    TREADLE_TAGS(TREADLE_TAG)
#undef TREADLE_TAG
  }
  throw_number("tag", static_cast<int>(tag));
}
#endif

HIDDEN_NAMESPACE_END(torch, stable, detail)
