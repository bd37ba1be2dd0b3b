// STABLE_TORCH_ERROR_CODE_CHECK: the result of a function of the ABI, as an exception with its
// reason.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include <torch/csrc/stable/c/shim.h>
#include <torch/headeronly/macros/Macros.h>

#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_10_0
// For those who include cuda_runtime.h.
#define STD_CUDA_CHECK(call)                                                        \
  do {                                                                              \
    char* treadle_text = nullptr;                                                   \
    torch_c10_cuda_check_msg(static_cast<int32_t>(call), __FILE__, __func__,        \
                             static_cast<uint32_t>(__LINE__), true, &treadle_text); \
    if (treadle_text) {                                                             \
      const std::string treadle_kept(treadle_text);                                 \
      torch_c10_cuda_free_error_msg(treadle_text);                                  \
      throw std::runtime_error(treadle_kept);                                       \
    }                                                                               \
  } while (0)
#define STD_CUDA_KERNEL_LAUNCH_CHECK() STD_CUDA_CHECK(cudaGetLastError())
#endif

HIDDEN_NAMESPACE_BEGIN(torch, stable, detail)

// An extension for an older version looks the function up, as the library may be newer.
[[maybe_unused]] static std::string reason_of_error() {
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_13_0
  const char* text = torch_exception_get_what_without_backtrace();
#else
  using Get = const char* (*)();
  const auto get =
      reinterpret_cast<Get>(dlsym(RTLD_DEFAULT, "torch_exception_get_what_without_backtrace"));
  const char* text = get ? get() : nullptr;
#endif
  return text ? text : "";
}

[[noreturn, maybe_unused]] C10_NOINLINE static void throw_exception(const char* call,
                                                                    const char* file, int line) {
  throw std::runtime_error(reason_of_error() + " (" + call + ", " + file + ":" +
                           std::to_string(line) + ")");
}

HIDDEN_NAMESPACE_END(torch, stable, detail)

#define STABLE_TORCH_ERROR_CODE_CHECK(call)                            \
  if ((call) != AOTI_TORCH_SUCCESS) {                                  \
    torch::stable::detail::throw_exception(#call, __FILE__, __LINE__); \
  }
