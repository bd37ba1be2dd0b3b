// The entry point of the library: it is a plug-in, and its start function registers the backend. It
// is compiled with the headers of the library that loads it, so only the version must agree.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/backend.h"
#include "aten/engine/backends/fallback.h"
#include "core/base/error.h"
#include "core/dispatch/dispatcher.h"
#include "plugin/treadle/plugin.h"

namespace treadle::cuda {
namespace {

// RuntimeError that names the missing library.
void require_devices() {
  int count = 0;
  const cudaError_t code = calls().get_device_count(&count);
  if (code == cudaSuccess && count > 0) return;
  calls().get_last_error();
  const char* const missing =
      code == cudaSuccess || code == cudaErrorNoDevice
          ? "the driver finds no device"
          : "the driver of NVIDIA's devices is not installed, or older than CUDA 13";
  fail<ErrorKind::Runtime>("expected a CUDA device, got none: ", missing, " (",
                           cudaGetErrorName(code == cudaSuccess ? cudaErrorNoDevice : code), ")");
}

void start(const treadle_api& api) {
  check<ErrorKind::Runtime>(std::string_view(api.treadle_version) == TREADLE_VERSION,
                            "expected treadle ", TREADLE_VERSION,
                            ", which treadle-cuda was made with, got ", api.treadle_version,
                            "; install the same version of both");
  require_devices();
  const DeviceType type = treadle::register_backend(std::make_unique<CudaBackend>());
  Dispatcher& d = Dispatcher::instance();
  if (!d.device_fallback(type))
    d.register_device_fallback(type, boxed_kernel<&cpu_fallback>,
                               KernelOrigin{KernelSource::Fallback, "treadle-cuda", 0, ""});
  d.check_registrations();
}

treadle_status start_plugin(const treadle_api* api) {
  try {
    start(*api);
    return TREADLE_OK;
  } catch (const std::exception& error) {
    return api->set_error(TREADLE_RUNTIME_ERROR, error.what());
  }
}

}  // namespace
}  // namespace treadle::cuda

const treadle_plugin* treadle_plugin_entry(void) {
  static const treadle_plugin plugin = {sizeof plugin, TREADLE_PLUGIN_VERSION, "treadle-cuda",
                                        TREADLE_VERSION, &treadle::cuda::start_plugin};
  return &plugin;
}
