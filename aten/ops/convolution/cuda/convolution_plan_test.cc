// cuDNN itself plans convolutions here, for devices of which only the properties are known. It
// needs no GPU for that. Every convolution of the benchmarked networks has an algorithm that gives
// the same bits each time, in every dtype and direction.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/convolution/cuda/convolution_plan.h"

#include <gtest/gtest.h>

#include <string>

namespace treadle::cuda {
namespace {

// The properties of a device that cuDNN reads, for an A100 and an H100.
std::string properties_of(int capability, int processors, int64_t shared_memory, int64_t memory,
                          int64_t cache, int clock, int memory_clock) {
  return str(R"({"deviceName": "a device", "cudaDeviceId": 0, "pciDeviceId": 0, "deviceVer": )",
             capability, R"(, "driverVer": 13000, "multiProcessorCount": )", processors,
             R"(, "maxSharedMemoryPerBlockOptin": )", shared_memory, R"(, "totalGlobalMem": )",
             memory, R"(, "l2CacheSize": )", cache, R"(, "smClockRateKHz": )", clock,
             R"(, "memClockRateKHz": )", memory_clock,
             R"(, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
  "regsPerBlock": 65536, "maxRegistersPerSM": 65536, "warpSize": 32,
  "maxSharedMemoryPerBlock": 49152, "reservedSharedMemoryPerBlock": 1024, "maxCtasPerSM": 32,
  "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1})");
}
CudnnDescriptor device(const std::string& properties) {
  CudnnDescriptor d(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  d.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
        static_cast<int64_t>(properties.size()) + 1, properties.c_str());
  succeed_cudnn(d.finalize(), "describing a device");
  return d;
}

// Images of `side` x `side`, of `batch` with `in` channels; windows of `window` x `window`.
struct Layer {
  int64_t batch, in, side, out, window, stride = 1, padding = 0, groups = 1, dilation = 1;
};
ConvolutionGeometry geometry(const Layer& l, cudnnDataType_t type, bool exact = false) {
  const int64_t end = (l.side + 2 * l.padding - l.dilation * (l.window - 1) - 1) / l.stride + 1;
  ConvolutionGeometry g;
  g.type = type;
  g.exact = exact;
  g.x = {l.batch, l.in, l.side, l.side};
  g.w = {l.out, l.in / l.groups, l.window, l.window};
  g.y = {l.batch, l.out, end, end};
  g.stride = {l.stride, l.stride};
  g.padding = {l.padding, l.padding};
  g.dilation = {l.dilation, l.dilation};
  return g;
}

// Convolutions of AlexNet, VGG-19, ResNet-50 and MobileNetV2, each kind once; then small and odd
// ones.
constexpr Layer kLayers[] = {
    {128, 3, 224, 64, 11, 4, 2},
    {128, 64, 27, 192, 5, 1, 2},
    {128, 192, 13, 384, 3, 1, 1},
    {64, 3, 224, 64, 3, 1, 1},
    {64, 64, 224, 64, 3, 1, 1},
    {64, 256, 56, 256, 3, 1, 1},
    {64, 512, 14, 512, 3, 1, 1},
    {64, 3, 224, 64, 7, 2, 3},
    {64, 64, 56, 256, 1},
    {64, 256, 56, 128, 1},
    {64, 128, 56, 128, 3, 2, 1},
    {64, 256, 56, 512, 1, 2},
    {64, 2048, 7, 512, 1},
    {64, 3, 224, 32, 3, 2, 1},
    {64, 16, 112, 96, 1},
    {64, 96, 112, 96, 3, 2, 1, 96},
    {64, 144, 56, 144, 3, 1, 1, 144},
    {64, 320, 7, 1280, 1},
    {1, 1, 5, 1, 3},
    {2, 3, 7, 4, 3, 2, 1},
    {4, 6, 9, 8, 3, 1, 1, 2},
    {3, 5, 11, 7, 3, 1, 2, 1, 2},
    {1, 2, 4, 2, 4},
};
constexpr ConvolutionPart kParts[] = {ConvolutionPart::Y, ConvolutionPart::X, ConvolutionPart::W};

struct Case {
  cudnnDataType_t type;
  bool exact;
};
constexpr Case kCases[] = {{CUDNN_DATA_FLOAT, false},
                           {CUDNN_DATA_FLOAT, true},
                           {CUDNN_DATA_HALF, false},
                           {CUDNN_DATA_BFLOAT16, false},
                           {CUDNN_DATA_DOUBLE, false}};

// The number of algorithms for it, and whether the first one that the device supports makes a plan.
void expect_a_plan(const ConvolutionGeometry& g, ConvolutionPart part, const CudnnTarget& target) {
  std::vector<CudnnDescriptor> ways = convolution_ways(g, part, target);
  bool planned = false;
  for (size_t i = 0; i < ways.size() && !planned; ++i)
    planned = ConvolutionPlan::make(std::move(ways[i]), target).has_value();
  EXPECT_TRUE(planned) << str("part ", static_cast<int>(part), ", dtype ", static_cast<int>(g.type),
                              ", x ", IntList(g.x), ", w ", IntList(g.w), ", exact ", g.exact);
}

class Planned : public testing::TestWithParam<std::string> {
 protected:
  CudnnDescriptor device_ = device(GetParam());
  CudnnTarget target_{nullptr, &device_};
};

TEST_P(Planned, EveryLayerInEveryDtypeAndDirection) {
  for (const Layer& layer : kLayers)
    for (const Case& c : kCases)
      for (const ConvolutionPart part : kParts)
        expect_a_plan(geometry(layer, c.type, c.exact), part, target_);
}

TEST_P(Planned, Volumes) {
  for (const Case& c : kCases)
    for (const ConvolutionPart part : kParts) {
      ConvolutionGeometry g;
      g.type = c.type;
      g.exact = c.exact;
      g.x = {2, 4, 6, 7, 8};
      g.w = {8, 4, 3, 3, 3};
      g.y = {2, 8, 4, 5, 6};
      g.stride = g.dilation = {1, 1, 1};
      g.padding = {0, 0, 0};
      expect_a_plan(g, part, target_);
    }
}

TEST_P(Planned, ABiasIsAddedAtOnceWhereThereIsAWay) {
  for (const cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}) {
    ConvolutionGeometry g = geometry({64, 256, 56, 256, 3, 1, 1}, type);
    g.bias = true;
    expect_a_plan(g, ConvolutionPart::Y, target_);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Devices, Planned,
    testing::Values(properties_of(800, 108, 166912, 42'000'000'000, 41943040, 1410000, 1215000),
                    properties_of(900, 132, 232448, 85'000'000'000, 52428800, 1980000, 2619000)),
    [](const testing::TestParamInfo<std::string>& info) {
      return info.index == 0 ? "Capability80" : "Capability90";
    });

}  // namespace
}  // namespace treadle::cuda
