// Calls: the functions of the CUDA runtime that the backend uses. They are a table, so that tests
// can substitute a simulated device. Their errors become treadle::Error.
//
//   succeed(calls().event_record(event, stream), "recording an event");
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

namespace treadle::cuda {

struct Calls {
  decltype(&cudaGetDeviceCount) get_device_count = &cudaGetDeviceCount;
  decltype(&cudaSetDevice) set_device = &cudaSetDevice;
  decltype(&cudaGetDeviceProperties) get_device_properties = &cudaGetDeviceProperties;
  decltype(&cudaDeviceSynchronize) device_synchronize = &cudaDeviceSynchronize;
  decltype(&cudaDeviceCanAccessPeer) device_can_access_peer = &cudaDeviceCanAccessPeer;
  decltype(&cudaDeviceEnablePeerAccess) device_enable_peer_access = &cudaDeviceEnablePeerAccess;
  decltype(&cudaMemGetInfo) mem_get_info = &cudaMemGetInfo;
  // The full type, because the runtime has templates of the same name beside the function.
  cudaError_t (*malloc)(void**, size_t) = &cudaMalloc;
  decltype(&cudaFree) free = &cudaFree;
  cudaError_t (*host_alloc)(void**, size_t, unsigned) = &cudaHostAlloc;
  decltype(&cudaFreeHost) free_host = &cudaFreeHost;
  cudaError_t (*host_get_device_pointer)(void**, void*, unsigned) = &cudaHostGetDevicePointer;
  decltype(&cudaMemcpyAsync) memcpy_async = &cudaMemcpyAsync;
  decltype(&cudaMemcpyPeerAsync) memcpy_peer_async = &cudaMemcpyPeerAsync;
  decltype(&cudaMemsetAsync) memset_async = &cudaMemsetAsync;
  decltype(&cudaStreamCreateWithPriority) stream_create_with_priority =
      &cudaStreamCreateWithPriority;
  decltype(&cudaStreamQuery) stream_query = &cudaStreamQuery;
  decltype(&cudaStreamSynchronize) stream_synchronize = &cudaStreamSynchronize;
  decltype(&cudaStreamWaitEvent) stream_wait_event = &cudaStreamWaitEvent;
  decltype(&cudaEventCreateWithFlags) event_create_with_flags = &cudaEventCreateWithFlags;
  decltype(&cudaEventDestroy) event_destroy = &cudaEventDestroy;
  decltype(&cudaEventRecord) event_record = &cudaEventRecord;
  decltype(&cudaEventQuery) event_query = &cudaEventQuery;
  decltype(&cudaEventSynchronize) event_synchronize = &cudaEventSynchronize;
  decltype(&cudaEventElapsedTime) event_elapsed_time = &cudaEventElapsedTime;
  decltype(&cudaLibraryLoadData) library_load_data = &cudaLibraryLoadData;
  decltype(&cudaLibraryGetKernel) library_get_kernel = &cudaLibraryGetKernel;
  cudaError_t (*library_get_global)(void**, size_t*, cudaLibrary_t,
                                    const char*) = &cudaLibraryGetGlobal;
  cudaError_t (*launch_kernel)(const void*, dim3, dim3, void**, size_t,
                               cudaStream_t) = &cudaLaunchKernel;
  decltype(&cudaStreamBeginCapture) stream_begin_capture = &cudaStreamBeginCapture;
  decltype(&cudaStreamEndCapture) stream_end_capture = &cudaStreamEndCapture;
  decltype(&cudaStreamGetCaptureInfo) stream_get_capture_info = &cudaStreamGetCaptureInfo;
  decltype(&cudaThreadExchangeStreamCaptureMode) thread_exchange_stream_capture_mode =
      &cudaThreadExchangeStreamCaptureMode;
  cudaError_t (*graph_instantiate)(cudaGraphExec_t*, cudaGraph_t,
                                   unsigned long long) = &cudaGraphInstantiate;
  decltype(&cudaGraphLaunch) graph_launch = &cudaGraphLaunch;
  decltype(&cudaGraphExecDestroy) graph_exec_destroy = &cudaGraphExecDestroy;
  decltype(&cudaGraphDestroy) graph_destroy = &cudaGraphDestroy;
  decltype(&cudaGraphDebugDotPrint) graph_debug_dot_print = &cudaGraphDebugDotPrint;
  decltype(&cudaGetLastError) get_last_error = &cudaGetLastError;
};

// The functions of the runtime, or those that a test has substituted before the first use.
Calls& calls();

// Raises RuntimeError "cuda: expected DOING to succeed, got cudaErrorName (what it means)" for any
// error; OutOfMemory if the device has no memory left. An error that does not persist on the device
// is cleared in the runtime.
void succeed(cudaError_t code, std::string_view doing);

}  // namespace treadle::cuda
