// A library in place of the CUDA runtime, where there is none, for extensions that have kernels for
// CUDA beside those for the CPU. What they do when they are loaded, announcing their kernels,
// succeeds. Each other call is an error, whose text says what is missing.
//
// SPDX-License-Identifier: Apache-2.0

extern "C" {

namespace {
constexpr int kNoDevice = 100;  // cudaErrorNoDevice
thread_local int last_error = 0;
int missing() { return last_error = kNoDevice; }
}  // namespace

#define EXPORT __attribute__((visibility("default")))

EXPORT const char* cudaGetErrorName(int error) {
  return error == 0 ? "cudaSuccess" : "cudaErrorNoDevice";
}
EXPORT const char* cudaGetErrorString(int error) {
  return error == 0 ? "no error"
                    : "expected the CUDA runtime, libcudart.so, for an extension's call, got none";
}
EXPORT int cudaGetLastError() {
  const int error = last_error;
  last_error = 0;
  return error;
}
EXPORT int cudaPeekAtLastError() { return last_error; }
EXPORT int cudaGetDeviceCount(int* count) {
  *count = 0;
  return missing();
}

// ---- what compiled code calls when it is loaded, and when it ends

EXPORT void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
EXPORT void __cudaRegisterFatBinaryEnd(void**) {}
EXPORT void __cudaUnregisterFatBinary(void**) {}
EXPORT void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*,
                                   void*, void*, int*) {}
EXPORT void __cudaRegisterVar(void**, char*, char*, const char*, int, unsigned long, int, int) {}
EXPORT void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, unsigned long, int,
                                     int) {}
EXPORT char __cudaInitModule(void**) { return 0; }

// ---- everything else

#define MISSING(name) \
  EXPORT int name() { return missing(); }
MISSING(__cudaGetKernel)
MISSING(__cudaLaunchKernel)
MISSING(__cudaPopCallConfiguration)
MISSING(__cudaPushCallConfiguration)
MISSING(cudaDeviceCanAccessPeer)
MISSING(cudaDeviceEnablePeerAccess)
MISSING(cudaDeviceGetAttribute)
MISSING(cudaDeviceGetStreamPriorityRange)
MISSING(cudaDeviceSetLimit)
MISSING(cudaDeviceSynchronize)
MISSING(cudaDriverGetVersion)
MISSING(cudaEventCreate)
MISSING(cudaEventCreateWithFlags)
MISSING(cudaEventDestroy)
MISSING(cudaEventElapsedTime)
MISSING(cudaEventQuery)
MISSING(cudaEventRecord)
MISSING(cudaEventRecordWithFlags)
MISSING(cudaEventSynchronize)
MISSING(cudaFree)
MISSING(cudaFreeAsync)
MISSING(cudaFreeHost)
MISSING(cudaFuncGetAttributes)
MISSING(cudaFuncSetAttribute)
MISSING(cudaFuncSetCacheConfig)
MISSING(cudaGetDevice)
MISSING(cudaGetDeviceProperties)
MISSING(cudaGetDeviceProperties_v2)
MISSING(cudaGetDriverEntryPoint)
MISSING(cudaGetDriverEntryPointByVersion)
MISSING(cudaGetFuncBySymbol)
MISSING(cudaGetSymbolAddress)
MISSING(cudaHostAlloc)
MISSING(cudaHostGetDevicePointer)
MISSING(cudaHostRegister)
MISSING(cudaHostUnregister)
MISSING(cudaLaunchCooperativeKernel)
MISSING(cudaLaunchKernel)
MISSING(cudaLaunchKernelExC)
MISSING(cudaMalloc)
MISSING(cudaMallocAsync)
MISSING(cudaMallocHost)
MISSING(cudaMallocManaged)
MISSING(cudaMallocPitch)
MISSING(cudaMemGetInfo)
MISSING(cudaMemcpy)
MISSING(cudaMemcpy2D)
MISSING(cudaMemcpy2DAsync)
MISSING(cudaMemcpyAsync)
MISSING(cudaMemcpyFromSymbol)
MISSING(cudaMemcpyFromSymbolAsync)
MISSING(cudaMemcpyPeerAsync)
MISSING(cudaMemcpyToSymbol)
MISSING(cudaMemcpyToSymbolAsync)
MISSING(cudaMemset)
MISSING(cudaMemset2DAsync)
MISSING(cudaMemsetAsync)
MISSING(cudaOccupancyMaxActiveBlocksPerMultiprocessor)
MISSING(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
MISSING(cudaOccupancyMaxActiveClusters)
MISSING(cudaPointerGetAttributes)
MISSING(cudaRuntimeGetVersion)
MISSING(cudaSetDevice)
MISSING(cudaSetDeviceFlags)
MISSING(cudaStreamAddCallback)
MISSING(cudaStreamBeginCapture)
MISSING(cudaStreamCreate)
MISSING(cudaStreamCreateWithFlags)
MISSING(cudaStreamCreateWithPriority)
MISSING(cudaStreamDestroy)
MISSING(cudaStreamEndCapture)
MISSING(cudaStreamGetCaptureInfo)
MISSING(cudaStreamIsCapturing)
MISSING(cudaStreamQuery)
MISSING(cudaStreamSynchronize)
MISSING(cudaStreamWaitEvent)

}  // extern "C"
