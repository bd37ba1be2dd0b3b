// The registries of device types and layouts.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/base/device.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/base/error.h"

namespace treadle {
namespace {

std::string error_of(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Device, ParsesAndPrints) {
  EXPECT_EQ(device_from_string("cpu"), kCPU);
  EXPECT_EQ(device_from_string("cpu:0"), kCPU);
  EXPECT_EQ(device_from_string("meta"), kMeta);
  EXPECT_EQ(to_string(device_from_string("cuda:12")), "cuda:12");
  EXPECT_EQ(to_string(device_from_string("cuda")), "cuda");
  const auto refusal = [](const char* text) { return error_of([&] { device_from_string(text); }); };
  EXPECT_NE(refusal("gpu").find("Expected one of cpu, meta, cuda device type at start of device "
                                "string: gpu"),
            std::string::npos);
  for (const char* bad : {"", ":1", "cpu "}) {
    EXPECT_NE(refusal(bad).find("Expected one of cpu, meta, cuda"), std::string::npos) << bad;
  }
  for (const char* bad : {"cpu:1", "cpu:", "cuda:-1", "cuda:01", "cuda:128", "cuda:1x"}) {
    EXPECT_NE(refusal(bad).find("expected a device, one of cpu, meta, cuda"), std::string::npos)
        << bad;
  }
}

TEST(Device, KnowsThoseOfPyTorchByName) {
  const Device mps = device_from_string("mps:1");
  EXPECT_EQ(to_string(mps), "mps:1");
  EXPECT_EQ(device_from_string("mps").type, mps.type);
  EXPECT_EQ(error_of([] { device_from_string("mps:x"); }).find("mps, "), std::string::npos);
  // A backend may be one of them.
  EXPECT_EQ(register_device_type("mps"), mps.type);
  EXPECT_EQ(error_of([] { register_device_type("mps"); }),
            "expected a new device name, got 'mps', which is taken");
}

TEST(Device, RegistersNewTypes) {
  const DeviceType first = register_device_type("toy");
  EXPECT_EQ(name_of(first), "toy");
  EXPECT_EQ(device_from_string("toy:3").type, first);
  EXPECT_EQ(error_of([] { register_device_type("toy"); }),
            "expected a new device name, got 'toy', which is taken");
  EXPECT_NE(error_of([] { register_device_type("No"); }).find("lower-case"), std::string::npos);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([i] { register_device_type("toy_" + std::to_string(i)); });
  for (std::thread& t : threads) t.join();
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(name_of(device_from_string("toy_" + std::to_string(i)).type),
              "toy_" + std::to_string(i));
  const std::string full = error_of([] {
    for (int i = 0;; ++i) register_device_type("more_" + std::to_string(i));
  });
  EXPECT_NE(full.find("expected at most 32 kinds of device"), std::string::npos);
  EXPECT_EQ(num_device_types(), kMaxDeviceTypes);
}

TEST(Layout, RegistersNewLayouts) {
  EXPECT_EQ(to_string(Layout::Strided), "treadle.strided");
  EXPECT_EQ(to_string(Layout::SparseBsc), "treadle.sparse_bsc");
  EXPECT_EQ(name_of(register_layout("run_length")), "run_length");
}

}  // namespace
}  // namespace treadle
