// The C functions of PyTorch's stable ABI whose names begin with aoti_torch_: constants, facts of
// tensors, tensors, libraries of operators, devices.
//
// A function returns AOTI_TORCH_SUCCESS, or AOTI_TORCH_FAILURE after an error, whose text
// torch_exception_get_what() gives. Results are written through the last pointers. A handle that a
// function makes is owned by the caller; handles that are arguments are borrowed.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/macros.h>
#include <torch/csrc/stable/version.h>
#include <torch/headeronly/util/Exception.h>

extern "C" {

// ---- constants: numbers that other functions take. They are no part of the ABI themselves.

AOTI_TORCH_EXPORT int32_t aoti_torch_device_type_cpu();
AOTI_TORCH_EXPORT int32_t aoti_torch_device_type_cuda();
AOTI_TORCH_EXPORT int32_t aoti_torch_device_type_meta();
AOTI_TORCH_EXPORT int32_t aoti_torch_device_type_xpu();
AOTI_TORCH_EXPORT int32_t aoti_torch_device_type_mps();
AOTI_TORCH_EXPORT int32_t aoti_torch_device_type_privateuse1();

AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_float8_e5m2();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_float8_e4m3fn();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_float8_e5m2fnuz();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_float8_e4m3fnuz();
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_12_0
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_float8_e8m0fnu();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_float4_e2m1fn_x2();
#endif
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_bfloat16();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_float16();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_float32();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_float64();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_uint8();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_uint16();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_uint32();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_uint64();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_int8();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_int16();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_int32();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_int64();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_bool();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_complex32();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_complex64();
AOTI_TORCH_EXPORT int32_t aoti_torch_dtype_complex128();
// The bytes of an element; 0 for a number that is none of the above.
AOTI_TORCH_EXPORT size_t aoti_torch_dtype_element_size(int32_t dtype);

AOTI_TORCH_EXPORT int32_t aoti_torch_layout_strided();
AOTI_TORCH_EXPORT int32_t aoti_torch_layout_sparse_coo();
AOTI_TORCH_EXPORT int32_t aoti_torch_layout_sparse_csr();
AOTI_TORCH_EXPORT int32_t aoti_torch_layout_sparse_csc();
AOTI_TORCH_EXPORT int32_t aoti_torch_layout_sparse_bsr();
AOTI_TORCH_EXPORT int32_t aoti_torch_layout_sparse_bsc();
AOTI_TORCH_EXPORT int32_t aoti_torch_layout__mkldnn();
AOTI_TORCH_EXPORT int32_t aoti_torch_layout_jagged();

AOTI_TORCH_EXPORT int32_t aoti_torch_memory_format_contiguous_format();
AOTI_TORCH_EXPORT int32_t aoti_torch_memory_format_channels_last();
AOTI_TORCH_EXPORT int32_t aoti_torch_memory_format_channels_last_3d();
AOTI_TORCH_EXPORT int32_t aoti_torch_memory_format_preserve_format();

// TORCH_ABI_VERSION of the library.
AOTI_TORCH_EXPORT uint64_t aoti_torch_abi_version();

// ---- modes of the calling thread

AOTI_TORCH_EXPORT bool aoti_torch_grad_mode_is_enabled();
AOTI_TORCH_EXPORT void aoti_torch_grad_mode_set_enabled(bool enabled);

// ---- facts of a tensor. Pointers are borrowed: they live as long as the tensor's geometry.

AOTI_TORCH_EXPORT AOTITorchError aoti_torch_get_data_ptr(AtenTensorHandle tensor, void** result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_get_storage_size(AtenTensorHandle tensor,
                                                             int64_t* bytes);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_get_dim(AtenTensorHandle tensor, int64_t* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_get_numel(AtenTensorHandle tensor, int64_t* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_get_storage_numel(AtenTensorHandle tensor,
                                                              int64_t* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_get_sizes(AtenTensorHandle tensor, int64_t** result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_get_size(AtenTensorHandle tensor, int64_t dim,
                                                     int64_t* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_get_strides(AtenTensorHandle tensor, int64_t** result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_get_stride(AtenTensorHandle tensor, int64_t dim,
                                                       int64_t* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_get_dtype(AtenTensorHandle tensor, int32_t* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_get_device_type(AtenTensorHandle tensor,
                                                            int32_t* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_get_device_index(AtenTensorHandle tensor,
                                                             int32_t* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_get_layout(AtenTensorHandle tensor, int32_t* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_get_storage_offset(AtenTensorHandle tensor,
                                                               int64_t* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_is_contiguous(AtenTensorHandle tensor, bool* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_is_defined(AtenTensorHandle tensor, bool* result);

// ---- tensors

AOTI_TORCH_EXPORT AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle tensor);
// A second handle of the same tensor.
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_new_tensor_handle(AtenTensorHandle tensor,
                                                              AtenTensorHandle* result);
// A handle of an undefined tensor.
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_new_uninitialized_tensor(AtenTensorHandle* result);
// Makes `dst` a handle of the tensor that `src` is one of.
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_assign_tensors(AtenTensorHandle src,
                                                           AtenTensorHandle dst);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_empty_strided(int64_t ndim, const int64_t* sizes,
                                                          const int64_t* strides, int32_t dtype,
                                                          int32_t device_type, int32_t device_index,
                                                          AtenTensorHandle* result);
// Tensors over memory that the caller keeps until the last of them is gone.
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_create_tensor_from_blob(
    void* data, int64_t ndim, const int64_t* sizes, const int64_t* strides, int64_t storage_offset,
    int32_t dtype, int32_t device_type, int32_t device_index, AtenTensorHandle* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_create_tensor_from_blob_v2(
    void* data, int64_t ndim, const int64_t* sizes, const int64_t* strides, int64_t storage_offset,
    int32_t dtype, int32_t device_type, int32_t device_index, AtenTensorHandle* result,
    int32_t layout, const uint8_t* opaque_metadata, int64_t opaque_metadata_size);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_clone(AtenTensorHandle tensor,
                                                  AtenTensorHandle* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_copy_(AtenTensorHandle self, AtenTensorHandle src,
                                                  int32_t non_blocking);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_zero_(AtenTensorHandle self);

// ---- calls and libraries of operators

// A value of a boxed call in 64 bits: see torch/csrc/stable/stableivalue_conversions.h.
using StableIValue = uint64_t;
class TorchLibraryOpaque;
using TorchLibraryHandle = TorchLibraryOpaque*;

AOTI_TORCH_EXPORT AOTITorchError aoti_torch_library_init_impl(const char* ns, const char* key,
                                                              const char* file, uint32_t line,
                                                              TorchLibraryHandle* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_library_init_def(const char* ns, const char* file,
                                                             uint32_t line,
                                                             TorchLibraryHandle* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_library_init_fragment(const char* ns, const char* file,
                                                                  uint32_t line,
                                                                  TorchLibraryHandle* result);
// A kernel. It is given max(inputs, outputs) values, takes over the inputs, and leaves the outputs
// from the first place on.
AOTI_TORCH_EXPORT AOTITorchError
aoti_torch_library_impl(TorchLibraryHandle library, const char* name,
                        void (*kernel)(StableIValue* stack, uint64_t inputs, uint64_t outputs));
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_library_def(TorchLibraryHandle library,
                                                        const char* schema);
// Takes back what was registered through the library.
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_delete_library_object(TorchLibraryHandle library);
// The arguments are taken over, the results lie from the first place on.
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_call_dispatcher(const char* name, const char* overload,
                                                            StableIValue* stack);

// ---- devices

struct DeviceGuardOpaque;
using DeviceGuardHandle = DeviceGuardOpaque*;
struct StreamOpaque;
using StreamHandle = StreamOpaque*;

// While the guard lives, the accelerator's device of this index is the thread's current one.
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_create_device_guard(int32_t device_index,
                                                                DeviceGuardHandle* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_delete_device_guard(DeviceGuardHandle guard);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_device_guard_set_index(DeviceGuardHandle guard,
                                                                   int32_t device_index);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_delete_stream(StreamHandle stream);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_stream_id(StreamHandle stream, int64_t* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_get_current_stream(int32_t device_index,
                                                               StreamHandle* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_get_current_device_index(int32_t* result);

#ifdef USE_CUDA
struct CUDAGuardOpaque;
using CUDAGuardHandle = CUDAGuardOpaque*;
struct CUDAStreamGuardOpaque;
using CUDAStreamGuardHandle = CUDAStreamGuardOpaque*;

AOTI_TORCH_EXPORT AOTITorchError aoti_torch_create_cuda_guard(int32_t device_index,
                                                              CUDAGuardHandle* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_delete_cuda_guard(CUDAGuardHandle guard);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_cuda_guard_set_index(CUDAGuardHandle guard,
                                                                 int32_t device_index);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_create_cuda_stream_guard(void* stream,
                                                                     int32_t device_index,
                                                                     CUDAStreamGuardHandle* result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_delete_cuda_stream_guard(CUDAStreamGuardHandle guard);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index,
                                                                    void** result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_cuda_caching_allocator_raw_alloc(uint64_t bytes,
                                                                             void** result);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_cuda_caching_allocator_raw_delete(void* data);
#endif

// ---- messages

// Throws a C++ exception with the text if `condition` is false.
AOTI_TORCH_EXPORT void aoti_torch_check(bool condition, const char* function, const char* file,
                                        uint32_t line, const char* message);
// A warning, as Python's.
AOTI_TORCH_EXPORT void aoti_torch_warn(const char* function, const char* file, uint32_t line,
                                       const char* message);

}  // extern "C"

#define AOTI_TORCH_CHECK(condition, ...)                                                           \
  if (!(condition)) {                                                                              \
    aoti_torch_check(false, __func__, __FILE__, static_cast<uint32_t>(__LINE__),                   \
                     (STD_TORCH_CHECK_MSG(condition, "", ##__VA_ARGS__) + std::string()).c_str()); \
  }
#define AOTI_TORCH_WARN(...) \
  aoti_torch_warn(__func__, __FILE__, static_cast<uint32_t>(__LINE__), #__VA_ARGS__)
