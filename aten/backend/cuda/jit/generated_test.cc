// The choice of kernels for calls, their launches, and the number of compilations: against a
// simulated device, with the real compiler.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/jit/generated.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "aten/backend/cuda/jit/compiler.h"
#include "aten/backend/cuda/jit/pointwise.h"
#include "aten/backend/cuda/jit/reduce.h"
#include "aten/backend/cuda/testing_device.h"
#include "core/base/error.h"

namespace treadle::cuda {
namespace {

using Kind = ExpressionKind;
// self + alpha * other
constexpr ExpressionNode kAddNodes[] = {{Kind::Name, 0, {}, "self", 0, 0},
                                        {Kind::Name, 0, {}, "alpha", 0, 0},
                                        {Kind::Name, 0, {}, "other", 0, 0},
                                        {Kind::Binary, 2, {1, 2}, "*", 0, 0},
                                        {Kind::Binary, 2, {0, 3}, "+", 0, 0}};
constexpr Expression kAdd{kAddNodes, 5};
// init = 0; step = acc + x; combine = a + b
constexpr ExpressionNode kInitNodes[] = {{Kind::Int, 0, {}, "0", 0, 0}};
constexpr ExpressionNode kStepNodes[] = {{Kind::Name, 0, {}, "acc", 0, 0},
                                         {Kind::Name, 0, {}, "x", 0, 0},
                                         {Kind::Binary, 2, {0, 1}, "+", 0, 0}};
constexpr ExpressionNode kCombineNodes[] = {{Kind::Name, 0, {}, "a", 0, 0},
                                            {Kind::Name, 0, {}, "b", 0, 0},
                                            {Kind::Binary, 2, {0, 1}, "+", 0, 0}};
constexpr ReduceExpressions kSum{{kInitNodes, 1}, {kStepNodes, 3}, {kCombineNodes, 3}, {}};

// out = self + 2 other, over tensors of the host, whose addresses are all that counts.
struct Call {
  Tensor out, self, other;
  DimVector shape, strides[3];
  GeneratedPointwise call;

  Call(IntList sizes, bool turned = false, ScalarType dtype = ScalarType::Float32)
      : out(empty_cpu(sizes, dtype)),
        self(empty_cpu(sizes, dtype)),
        other(empty_cpu(sizes, dtype)) {
    shape = turned ? DimVector(sizes) : DimVector{out.numel()};
    for (DimVector& s : strides) {
      s = contiguous_strides(shape);
      for (int64_t& stride : s) stride *= out.element_size();
    }
    if (turned) std::swap(strides[2][0], strides[2][1]);
    call.name = "add";
    call.body = &kAdd;
    call.device = {DeviceType::CUDA, 0};
    call.shape = shape;
    call.numel = out.numel();
    call.compute = dtype;
    call.out = {&out, strides[0].data(), "out"};
    call.inputs[0] = {&self, strides[1].data(), "self"};
    call.inputs[1] = {&other, strides[2].data(), "other"};
    call.input_count = 2;
    call.numbers[0] = {"alpha", Scalar(2)};
    call.number_count = 1;
  }
};

class Generated : public ::testing::Test {
 protected:
  Generated() { setenv("TREADLE_CUDA_CACHE", "", 1); }
  TestingDevice& device = TestingDevice::start();
};

TEST_F(Generated, ContiguousCallsReadPacks) {
  const Call c({1000});
  const PointwisePlan plan = plan_pointwise(c.call, 100);
  EXPECT_TRUE(plan.contiguous);
  EXPECT_TRUE(plan.narrow);
  EXPECT_EQ(plan.pack, 4);
  EXPECT_EQ(plan.times, 1);
  EXPECT_EQ(pointwise_source(plan),
            R"(#include "aten/backend/cuda/device/pointwise.cuh"

namespace treadle::simd::N_CUDA {
struct Function {
  template <class V>
  static auto eval([[maybe_unused]] V v_self, [[maybe_unused]] V v_other, )"
            R"([[maybe_unused]] V v_alpha) {
    return (v_self + (v_alpha * v_other));
  }
};
}  // namespace treadle::simd::N_CUDA

using namespace treadle::cuda;
using treadle::simd::N_CUDA::Function;

extern "C" __global__ void __launch_bounds__(256) pointwise(const unsigned total, float* out, )"
            R"(const float* in1, const float* in2, const Numbers<float, 1> numbers) {
  contiguous<Function, 4, 1>(total, out, numbers, Held<float, false, 4, 1>{in1}, )"
            R"(Held<float, false, 4, 1>{in2});
}
)");
  const Call large({1 << 20});
  EXPECT_EQ(plan_pointwise(large.call, 100).times, 4);
  const Call halves({1000}, false, ScalarType::Float16);
  EXPECT_EQ(plan_pointwise(halves.call, 100).pack, 8);
}

TEST_F(Generated, CallsThatAreNotAlignedOrNotContiguousReadElements) {
  Call c({1000});
  c.self = alias_with_geometry(empty_cpu({1001}, ScalarType::Float32), {1000}, {1}, 1);
  EXPECT_EQ(plan_pointwise(c.call, 100).pack, 1);
  const Call turned({30, 30}, true);
  const PointwisePlan plan = plan_pointwise(turned.call, 100);
  EXPECT_FALSE(plan.contiguous);
  EXPECT_EQ(plan.dims, 2);
}

TEST_F(Generated, PlacesBeyond31BitsTake64) {
  Call c({30, 30}, true);
  c.strides[1][0] = int64_t{1} << 30;
  EXPECT_FALSE(plan_pointwise(c.call, 100).narrow);
}

TEST_F(Generated, AKernelIsMadeOnceAndLaunchedWithTheCallsArguments) {
  const Call c({1000});
  device.on_launch = [&](void** arguments) {
    EXPECT_EQ(*static_cast<uint32_t*>(arguments[0]), 1000u);
    EXPECT_EQ(*static_cast<void**>(arguments[1]), c.out.data());
    EXPECT_EQ(*static_cast<void**>(arguments[2]), c.self.data());
    EXPECT_EQ(*static_cast<void**>(arguments[3]), c.other.data());
    EXPECT_EQ(*static_cast<float*>(arguments[4]), 2.0f);
  };
  EXPECT_TRUE(run_pointwise(c.call));
  EXPECT_TRUE(run_pointwise(c.call));
  EXPECT_EQ(device.loaded, 1);
  ASSERT_EQ(device.launches.size(), 2u);
  EXPECT_EQ(device.launches[0].blocks.x, 1u);
  EXPECT_EQ(device.launches[0].threads.x, 256u);
  device.on_launch = nullptr;
  EXPECT_TRUE(run_pointwise(Call({3000}).call));
  EXPECT_EQ(device.loaded, 1);
  EXPECT_EQ(device.launches[2].blocks.x, 3u);
  EXPECT_TRUE(run_pointwise(Call({30, 30}, true).call));
  EXPECT_EQ(device.loaded, 2);
}

ReduceCall fold_of(const Tensor& in, const Tensor& out, bool rows) {
  ReduceCall c{};
  const int64_t n = in.sizes()[0], m = in.sizes()[1];
  c.kept_sizes = {rows ? n : m};
  c.kept_in_strides = {rows ? m * 4 : 4};
  c.kept_out_strides = {4};
  c.reduced_sizes = {rows ? m : n};
  c.reduced_in_strides = {rows ? 4 : m * 4};
  c.outputs = out.numel();
  c.reduced = c.reduced_sizes[0];
  c.in_dtype = c.out_dtype = c.compute = ScalarType::Float32;
  return c;
}

TEST_F(Generated, FoldsAreSplitByTheirSizes) {
  const Tensor in = empty_cpu({64, 1024}, ScalarType::Float32);
  const Tensor rows = empty_cpu({64}, ScalarType::Float32);
  const ReduceCall by_rows = fold_of(in, rows, true);
  const ReducePlan plan = plan_reduce({"sum", &kSum, by_rows, rows, in});
  EXPECT_TRUE(plan.rows);
  EXPECT_TRUE(plan.wide);
  EXPECT_EQ(plan.width, 4);  // 64 threads, of which each takes four packs of four
  EXPECT_EQ(plan.pieces, 1);
  const Tensor columns = empty_cpu({1024}, ScalarType::Float32);
  const ReduceCall by_columns = fold_of(in, columns, false);
  const ReducePlan across = plan_reduce({"sum", &kSum, by_columns, columns, in});
  EXPECT_FALSE(across.rows);
  EXPECT_EQ(across.width, 32);
  // One long row is processed in pieces of whole packs.
  const Tensor long_row = empty_cpu({1, 1 << 22}, ScalarType::Float32);
  const Tensor one = empty_cpu({1}, ScalarType::Float32);
  const ReduceCall whole = fold_of(long_row, one, true);
  const ReducePlan pieces = plan_reduce({"sum", &kSum, whole, one, long_row});
  EXPECT_GT(pieces.pieces, 100);
  EXPECT_EQ(pieces.piece % (256 * 16), 0);
  EXPECT_GE(pieces.pieces * pieces.piece, 1 << 22);
}

TEST_F(Generated, WhatDoesNotCompileSaysSo) {
  try {
    compile("this is no program", 90);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Internal);
    EXPECT_TRUE(std::string(e.what()).starts_with(
        "internal error, please report it: a generated kernel does not compile:\nkernel.cu(1): "
        "error: "));
  }
}

TEST_F(Generated, CompiledKernelsAreKeptOnDisk) {
  char folder[] = "/tmp/treadle-cuda-test.XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  setenv("TREADLE_CUDA_CACHE", folder, 1);
  const std::string source = "extern \"C\" __global__ void f() {}\n";
  const std::string made = compile(source, 90), kept = compile(source, 90);
  EXPECT_EQ(made, kept);
  EXPECT_NE(compile(source, 80), made);
  // A file that was cut off is made anew.
  const std::string command = std::string("for f in ") + folder + "/*; do truncate -s 10 $f; done";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(compile(source, 90), made);
  ASSERT_EQ(std::system((std::string("rm -r ") + folder).c_str()), 0);
}

}  // namespace
}  // namespace treadle::cuda
