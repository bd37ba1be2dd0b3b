// The C functions of PyTorch's stable ABI whose names begin with torch_, by the version that has
// them first. torch/csrc/inductor/aoti_torch/c/shim.h has the rules and the older functions.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/version.h>

extern "C" {

#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_10_0

// `version` is TORCH_ABI_VERSION of the headers that the extension was compiled with.
AOTI_TORCH_EXPORT AOTITorchError torch_call_dispatcher(const char* name, const char* overload,
                                                       StableIValue* stack, uint64_t version);
AOTI_TORCH_EXPORT AOTITorchError torch_library_impl(
    TorchLibraryHandle library, const char* name,
    void (*kernel)(StableIValue* stack, uint64_t inputs, uint64_t outputs), uint64_t version);

// Lists own their elements as long as nobody takes those out.
struct StableListOpaque;
using StableListHandle = StableListOpaque*;
AOTI_TORCH_EXPORT AOTITorchError torch_new_list_reserve_size(size_t size, StableListHandle* result);
AOTI_TORCH_EXPORT AOTITorchError torch_list_size(StableListHandle list, size_t* result);
AOTI_TORCH_EXPORT AOTITorchError torch_list_get_item(StableListHandle list, size_t index,
                                                     StableIValue* result);
AOTI_TORCH_EXPORT AOTITorchError torch_list_set_item(StableListHandle list, size_t index,
                                                     StableIValue element);
AOTI_TORCH_EXPORT AOTITorchError torch_list_push_back(StableListHandle list, StableIValue element);
AOTI_TORCH_EXPORT AOTITorchError torch_delete_list(StableListHandle list);

struct StringOpaque;
using StringHandle = StringOpaque*;
AOTI_TORCH_EXPORT AOTITorchError torch_new_string_handle(const char* data, size_t length,
                                                         StringHandle* result);
AOTI_TORCH_EXPORT AOTITorchError torch_delete_string(StringHandle string);
AOTI_TORCH_EXPORT AOTITorchError torch_string_length(StringHandle string, size_t* result);
AOTI_TORCH_EXPORT AOTITorchError torch_string_c_str(StringHandle string, const char** result);

// "cuda:1" as a type and an index, which is -1 where the text has none.
AOTI_TORCH_EXPORT AOTITorchError torch_parse_device_string(const char* text, uint32_t* device_type,
                                                           int32_t* device_index);

// Calls `function` for pieces of [begin, end) of about `grain_size`, on several threads.
typedef void (*ParallelFunc)(int64_t begin, int64_t end, void* context);
AOTI_TORCH_EXPORT AOTITorchError torch_parallel_for(int64_t begin, int64_t end, int64_t grain_size,
                                                    ParallelFunc function, void* context);
// Below torch_get_num_threads(); 0 outside of torch_parallel_for().
AOTI_TORCH_EXPORT AOTITorchError torch_get_thread_idx(uint32_t* result);
AOTI_TORCH_EXPORT AOTITorchError torch_get_num_threads(uint32_t* result);

AOTI_TORCH_EXPORT AOTITorchError torch_get_mutable_data_ptr(AtenTensorHandle tensor, void** result);
AOTI_TORCH_EXPORT AOTITorchError torch_get_const_data_ptr(AtenTensorHandle tensor,
                                                          const void** result);
AOTI_TORCH_EXPORT AOTITorchError torch_set_requires_grad(AtenTensorHandle tensor,
                                                         bool requires_grad);

#ifdef USE_CUDA
AOTI_TORCH_EXPORT AOTITorchError torch_get_current_cuda_blas_handle(void** result);
AOTI_TORCH_EXPORT AOTITorchError torch_set_current_cuda_stream(void* stream, int32_t device_index);
AOTI_TORCH_EXPORT AOTITorchError torch_get_cuda_stream_from_pool(bool high_priority,
                                                                 int32_t device_index,
                                                                 void** result);
AOTI_TORCH_EXPORT AOTITorchError torch_cuda_stream_synchronize(void* stream, int32_t device_index);
// For a cudaError_t other than 0 a text, which torch_c10_cuda_free_error_msg() frees; else null.
AOTI_TORCH_EXPORT AOTITorchError torch_c10_cuda_check_msg(int32_t error, const char* file,
                                                          const char* function, uint32_t line,
                                                          bool include_device_assertions,
                                                          char** message);
AOTI_TORCH_EXPORT void torch_c10_cuda_free_error_msg(char* message);
#endif

#endif  // 2.10

#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_11_0

AOTI_TORCH_EXPORT int32_t torch_dtype_float8_e8m0fnu();
AOTI_TORCH_EXPORT int32_t torch_dtype_float4_e2m1fn_x2();

// A tensor over memory; deleter(data, deleter_context) is called when the last tensor on it is gone.
AOTI_TORCH_EXPORT AOTITorchError torch_from_blob(
    void* data, int64_t ndim, const int64_t* sizes, const int64_t* strides, int64_t storage_offset,
    int32_t dtype, int32_t device_type, int32_t device_index, AtenTensorHandle* result,
    int32_t layout, const uint8_t* opaque_metadata, int64_t opaque_metadata_size,
    void (*deleter)(void* data, void* context), void* deleter_context);

#endif  // 2.11

#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_12_0

AOTI_TORCH_EXPORT int32_t torch_tag_core();
AOTI_TORCH_EXPORT int32_t torch_tag_cudagraph_unsafe();
AOTI_TORCH_EXPORT int32_t torch_tag_data_dependent_output();
AOTI_TORCH_EXPORT int32_t torch_tag_dynamic_output_shape();
AOTI_TORCH_EXPORT int32_t torch_tag_flexible_layout();
AOTI_TORCH_EXPORT int32_t torch_tag_generated();
AOTI_TORCH_EXPORT int32_t torch_tag_inplace_view();
AOTI_TORCH_EXPORT int32_t torch_tag_maybe_aliasing_or_mutating();
AOTI_TORCH_EXPORT int32_t torch_tag_needs_contiguous_strides();
AOTI_TORCH_EXPORT int32_t torch_tag_needs_exact_strides();
AOTI_TORCH_EXPORT int32_t torch_tag_needs_fixed_stride_order();
AOTI_TORCH_EXPORT int32_t torch_tag_nondeterministic_bitwise();
AOTI_TORCH_EXPORT int32_t torch_tag_nondeterministic_seeded();
AOTI_TORCH_EXPORT int32_t torch_tag_out_variant();
AOTI_TORCH_EXPORT int32_t torch_tag_pointwise();
AOTI_TORCH_EXPORT int32_t torch_tag_pt2_compliant_tag();
AOTI_TORCH_EXPORT int32_t torch_tag_reduction();
AOTI_TORCH_EXPORT int32_t torch_tag_view_copy();

AOTI_TORCH_EXPORT AOTITorchError torch_library_def_with_tags(TorchLibraryHandle library,
                                                             const char* schema,
                                                             const int32_t* tags, int32_t num_tags);

#endif  // 2.12

#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_13_0

// The Python module that has what the library's operators lack, such as their fake kernels.
AOTI_TORCH_EXPORT AOTITorchError torch_library_set_python_module(TorchLibraryHandle library,
                                                                 const char* module,
                                                                 const char* context);

// The text of the calling thread's last error. It lives until the thread's next error.
AOTI_TORCH_EXPORT const char* torch_exception_get_what();
AOTI_TORCH_EXPORT const char* torch_exception_get_what_without_backtrace();

// The place of the value of an optional that is not absent.
AOTI_TORCH_EXPORT AOTITorchError torch_new_stable_ivalue(StableIValue** result);
AOTI_TORCH_EXPORT AOTITorchError torch_delete_stable_ivalue(StableIValue* value);

// cudaStream_t and the like.
AOTI_TORCH_EXPORT AOTITorchError torch_stream_native_handle(StreamHandle stream, void** result);

AOTI_TORCH_EXPORT AOTITorchError torch_new_generator_handle(AtenGeneratorHandle generator,
                                                            AtenGeneratorHandle* result);
AOTI_TORCH_EXPORT AOTITorchError torch_delete_generator(AtenGeneratorHandle generator);
AOTI_TORCH_EXPORT AOTITorchError torch_generator_get_device(AtenGeneratorHandle generator,
                                                            int32_t* device_type,
                                                            int32_t* device_index);

#endif  // 2.13

#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_14_0

AOTI_TORCH_EXPORT AOTITorchError torch_has_storage(AtenTensorHandle tensor, bool* result);

// Python objects are PyObject*. The caller holds the interpreter lock. Results are new references.
AOTI_TORCH_EXPORT AOTITorchError torch_tensor_from_pyobject(void* object, AtenTensorHandle* result);
// `type` is the exact class of the result, null for Tensor.
AOTI_TORCH_EXPORT AOTITorchError torch_tensor_to_pyobject(AtenTensorHandle tensor, void* type,
                                                          void** result);

#endif  // 2.14

#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_15_0

AOTI_TORCH_EXPORT AOTITorchError torch_is_tensor_pyobject(void* object, bool* result);
AOTI_TORCH_EXPORT AOTITorchError torch_dtype_from_pyobject(void* object, int32_t* result);
AOTI_TORCH_EXPORT AOTITorchError torch_dtype_to_pyobject(int32_t dtype, void** result);
AOTI_TORCH_EXPORT AOTITorchError torch_device_from_pyobject(void* object, int32_t* device_type,
                                                            int32_t* device_index);
AOTI_TORCH_EXPORT AOTITorchError torch_device_to_pyobject(int32_t device_type, int32_t device_index,
                                                          void** result);

#endif  // 2.15

}  // extern "C"
