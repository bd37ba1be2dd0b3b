// The library's message when it is loaded where it cannot work, and the match of its kernels with
// the operators that they are registered for.
//
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "aten/backend/cuda/testing_device.h"
#include "core/dispatch/dispatcher.h"
#include "plugin/treadle/plugin.h"

namespace treadle::cuda {
namespace {

std::string& error_text() {
  static std::string text;
  return text;
}

std::string start_on(const char* version, decltype(calls().get_device_count) count) {
  TestingDevice::start();
  calls().get_device_count = count;
  treadle_api api{};
  api.size = sizeof api;
  api.treadle_version = version;
  api.set_error = [](treadle_status kind, const char* text) {
    error_text() = text;
    return kind;
  };
  const treadle_plugin* const plugin = treadle_plugin_entry();
  EXPECT_EQ(plugin->interface_version, static_cast<uint32_t>(TREADLE_PLUGIN_VERSION));
  EXPECT_EQ(plugin->start(&api), TREADLE_RUNTIME_ERROR);
  return error_text();
}

TEST(Entry, SaysWhatIsMissing) {
  EXPECT_EQ(start_on(TREADLE_VERSION, [](int*) { return cudaErrorInsufficientDriver; }),
            "expected a CUDA device, got none: the driver of NVIDIA's devices is not installed, or "
            "older than CUDA 13 (cudaErrorInsufficientDriver)");
  EXPECT_EQ(start_on(TREADLE_VERSION, [](int*) { return cudaErrorNoDevice; }),
            "expected a CUDA device, got none: the driver finds no device (cudaErrorNoDevice)");
  EXPECT_EQ(start_on("0.0.1", [](int*) { return cudaSuccess; }),
            "expected treadle " TREADLE_VERSION
            ", which treadle-cuda was made with, got 0.0.1; install the same version of both");
}

TEST(Entry, KernelsAreRegisteredForDtypesThatTheOperatorHas) {
  const Dispatcher& d = Dispatcher::instance();
  EXPECT_NO_THROW(d.check_registrations());
  size_t operators = 0;
  for (const Operator* op : d.operators()) {
    if (!op->has_table() || op->info().form != Form::Functional) continue;
    const KernelRow* const row = op->table().row(DeviceType::CUDA, Layout::Strided);
    if (!row) continue;
    // An operator for devices alone, such as whole recurrent layers, has no kernel for the CPU.
    const bool on_cpu = op->table().row(DeviceType::CPU, Layout::Strided) != nullptr;
    size_t kernels = 0;
    for (int t = 0; t < kNumScalarTypes; ++t) {
      if (!row->kernels[static_cast<size_t>(t)]) continue;
      ++kernels;
      EXPECT_TRUE(!on_cpu ||
                  op->table().find(kCPU, Layout::Strided, static_cast<ScalarType>(t)) != nullptr)
          << op->info().name << " has no dtype " << name_of(static_cast<ScalarType>(t));
    }
    EXPECT_GT(kernels, 0u) << op->info().name;
    ++operators;
  }
  EXPECT_GE(operators, 20u);
}

}  // namespace
}  // namespace treadle::cuda
