// The tables of numbers, and the functions that tell them to extensions.
//
// SPDX-License-Identifier: Apache-2.0
#include "stable_abi/numbers.h"

#include <optional>

#include "core/device/backend.h"
#include "stable_abi/boundary.h"

namespace treadle::stable_abi {
namespace {

template <class T>
struct Number {
  int32_t number;
  T value;
};

constexpr Number<ScalarType> kDtypes[] = {
    {0, ScalarType::UInt8},
    {1, ScalarType::Int8},
    {2, ScalarType::Int16},
    {3, ScalarType::Int32},
    {4, ScalarType::Int64},
    {5, ScalarType::Float16},
    {6, ScalarType::Float32},
    {7, ScalarType::Float64},
    {8, ScalarType::Complex32},
    {9, ScalarType::Complex64},
    {10, ScalarType::Complex128},
    {11, ScalarType::Bool},
    {12, ScalarType::QInt8},
    {13, ScalarType::QUInt8},
    {14, ScalarType::QInt32},
    {15, ScalarType::BFloat16},
    {16, ScalarType::QUInt4x2},
    {17, ScalarType::QUInt2x4},
    {23, ScalarType::Float8_e5m2},
    {24, ScalarType::Float8_e4m3fn},
    {25, ScalarType::Float8_e5m2fnuz},
    {26, ScalarType::Float8_e4m3fnuz},
    {27, ScalarType::UInt16},
    {28, ScalarType::UInt32},
    {29, ScalarType::UInt64},
    {44, ScalarType::Float8_e8m0fnu},
    {45, ScalarType::Float4_e2m1fn_x2},
    {46, ScalarType::BComplex32},
};
constexpr Number<Layout> kLayouts[] = {
    {0, Layout::Strided},   {1, Layout::SparseCoo}, {2, Layout::SparseCsr}, {4, Layout::SparseCsc},
    {5, Layout::SparseBsr}, {6, Layout::SparseBsc}, {7, Layout::Jagged},
};
constexpr int32_t kMkldnn = 3;  // no tensor has this layout here
constexpr Number<MemoryFormat> kFormats[] = {
    {0, MemoryFormat::Contiguous},
    {1, MemoryFormat::Preserve},
    {2, MemoryFormat::ChannelsLast},
    {3, MemoryFormat::ChannelsLast3d},
};
constexpr Number<DeviceType> kDevices[] = {
    {0, DeviceType::CPU}, {1, DeviceType::CUDA}, {14, DeviceType::Meta}};
// Kinds of devices that have no number of their own here.
constexpr int32_t kXpu = 12, kMps = 13, kPrivateUse1 = 20;

constexpr int32_t number_in(const auto& table, auto value) {
  for (const auto& row : table) {
    if (row.value == value) return row.number;
  }
  return -1;
}
template <class Table>
auto value_in(const Table& table, int32_t number, const char* what) {
  for (const auto& row : table) {
    if (row.number == number) return row.value;
  }
  fail<ErrorKind::Value>("expected the number of a ", what, ", got ", number);
}
template <class T>
int32_t known(int32_t number, T value, const char* what) {
  check<ErrorKind::NotImplemented>(number >= 0, "expected a ", what,
                                   " that extensions of PyTorch know, got ", value);
  return number;
}

int32_t number_by_name(DeviceType type) {
  const std::string_view name = name_of(type);
  return name == "xpu" ? kXpu : name == "mps" ? kMps : kPrivateUse1;
}

}  // namespace

int32_t number_of(ScalarType dtype) { return known(number_in(kDtypes, dtype), dtype, "dtype"); }
int32_t number_of(Layout layout) { return known(number_in(kLayouts, layout), layout, "layout"); }
int32_t number_of(MemoryFormat format) { return number_in(kFormats, format); }
int32_t number_of(DeviceType type) {
  const int32_t number = number_in(kDevices, type);
  return number >= 0 ? number : number_by_name(type);
}

ScalarType dtype_of(int32_t number) { return value_in(kDtypes, number, "dtype"); }
Layout layout_of(int32_t number) {
  check<ErrorKind::NotImplemented>(number != kMkldnn,
                                   "expected a layout that there is, got that of mkldnn");
  return value_in(kLayouts, number, "layout");
}
MemoryFormat memory_format_of(int32_t number) {
  return value_in(kFormats, number, "memory format");
}
DeviceType device_type_of(int32_t number) {
  if (number != kXpu && number != kMps && number != kPrivateUse1)
    return value_in(kDevices, number, "kind of device");
  const char* const kind = number == kXpu ? "xpu" : number == kMps ? "mps" : "privateuse1";
  std::optional<DeviceType> found;
  for (const DeviceType type : backends()) {
    if (number_of(type) != number) continue;
    check<ErrorKind::Runtime>(!found, "expected one backend of the kind ", kind,
                              ", as PyTorch has, got ", name_of(*found), " and ", name_of(type));
    found = type;
  }
  check<ErrorKind::Runtime>(found.has_value(), "expected a kind of device with a backend, got ",
                            kind);
  return *found;
}
Device device_of(int32_t type, int32_t index) { return numbered(device_type_of(type), index); }
Device numbered(DeviceType known, int32_t index) {
  if (known == DeviceType::CPU || known == DeviceType::Meta) return {known, -1};
  check<ErrorKind::Value>(index >= -1 && index < 128, "expected the index of a device, got ",
                          index);
  return {known, static_cast<int8_t>(index)};
}

}  // namespace treadle::stable_abi

using namespace treadle;              // NOLINT
using namespace treadle::stable_abi;  // NOLINT

uint64_t aoti_torch_abi_version() { return TORCH_ABI_VERSION; }

int32_t aoti_torch_device_type_cpu() { return number_in(kDevices, DeviceType::CPU); }
int32_t aoti_torch_device_type_cuda() { return number_in(kDevices, DeviceType::CUDA); }
int32_t aoti_torch_device_type_meta() { return number_in(kDevices, DeviceType::Meta); }
int32_t aoti_torch_device_type_xpu() { return kXpu; }
int32_t aoti_torch_device_type_mps() { return kMps; }
int32_t aoti_torch_device_type_privateuse1() { return kPrivateUse1; }

#define DTYPE(name, type) \
  int32_t name() { return number_in(kDtypes, ScalarType::type); }
DTYPE(aoti_torch_dtype_float8_e5m2, Float8_e5m2)
DTYPE(aoti_torch_dtype_float8_e4m3fn, Float8_e4m3fn)
DTYPE(aoti_torch_dtype_float8_e5m2fnuz, Float8_e5m2fnuz)
DTYPE(aoti_torch_dtype_float8_e4m3fnuz, Float8_e4m3fnuz)
DTYPE(aoti_torch_dtype_float8_e8m0fnu, Float8_e8m0fnu)
DTYPE(aoti_torch_dtype_float4_e2m1fn_x2, Float4_e2m1fn_x2)
DTYPE(torch_dtype_float8_e8m0fnu, Float8_e8m0fnu)
DTYPE(torch_dtype_float4_e2m1fn_x2, Float4_e2m1fn_x2)
DTYPE(aoti_torch_dtype_bfloat16, BFloat16)
DTYPE(aoti_torch_dtype_float16, Float16)
DTYPE(aoti_torch_dtype_float32, Float32)
DTYPE(aoti_torch_dtype_float64, Float64)
DTYPE(aoti_torch_dtype_uint8, UInt8)
DTYPE(aoti_torch_dtype_uint16, UInt16)
DTYPE(aoti_torch_dtype_uint32, UInt32)
DTYPE(aoti_torch_dtype_uint64, UInt64)
DTYPE(aoti_torch_dtype_int8, Int8)
DTYPE(aoti_torch_dtype_int16, Int16)
DTYPE(aoti_torch_dtype_int32, Int32)
DTYPE(aoti_torch_dtype_int64, Int64)
DTYPE(aoti_torch_dtype_bool, Bool)
DTYPE(aoti_torch_dtype_complex32, Complex32)
DTYPE(aoti_torch_dtype_complex64, Complex64)
DTYPE(aoti_torch_dtype_complex128, Complex128)
#undef DTYPE

size_t aoti_torch_dtype_element_size(int32_t dtype) {
  for (const auto& row : kDtypes) {
    if (row.number == dtype) return static_cast<size_t>(item_size(row.value));
  }
  return 0;
}

#define LAYOUT(name, type) \
  int32_t aoti_torch_layout_##name() { return number_in(kLayouts, Layout::type); }
LAYOUT(strided, Strided)
LAYOUT(sparse_coo, SparseCoo)
LAYOUT(sparse_csr, SparseCsr)
LAYOUT(sparse_csc, SparseCsc)
LAYOUT(sparse_bsr, SparseBsr)
LAYOUT(sparse_bsc, SparseBsc)
LAYOUT(jagged, Jagged)
#undef LAYOUT
int32_t aoti_torch_layout__mkldnn() { return kMkldnn; }

#define FORMAT(name, type) \
  int32_t aoti_torch_memory_format_##name() { return number_of(MemoryFormat::type); }
FORMAT(contiguous_format, Contiguous)
FORMAT(preserve_format, Preserve)
FORMAT(channels_last, ChannelsLast)
FORMAT(channels_last_3d, ChannelsLast3d)
#undef FORMAT
