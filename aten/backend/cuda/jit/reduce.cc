// Reductions on a device.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/jit/reduce.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "aten/backend/cuda/backend.h"
#include "aten/backend/cuda/device_guard.h"
#include "aten/backend/cuda/jit/expression.h"
#include "aten/backend/cuda/jit/generated.h"
#include "aten/backend/cuda/jit/geometry.h"
#include "core/base/error.h"

namespace treadle::cuda {
namespace {

constexpr int64_t kThreads = GeneratedKernel::kThreads;
constexpr int64_t kManyBlocks = 512;  // keep any device busy

int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A number of threads: a power of two up to that of a block.
int64_t threads_for(int64_t work) {
  return static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(work, 1, kThreads))));
}

bool is_wide(const GeneratedReduce& call) {
  if (reinterpret_cast<uintptr_t>(call.in.data()) % 16 != 0) return false;
  for (size_t d = 0; d < call.call.kept_sizes.size(); ++d)
    if (call.call.kept_in_strides[d] % 16 != 0) return false;
  return true;
}

KernelKey key_of(const GeneratedReduce& call, const ReducePlan& plan, FoldStage stage) {
  KernelKey key;
  key.add('r');
  key.add(call.parts);
  key.add(plan.in);
  key.add(plan.out);
  key.add(plan.compute);
  key.add(static_cast<char>(plan.kept));
  key.add(static_cast<char>(plan.folded));
  key.add(static_cast<char>(plan.narrow << 2 | plan.rows << 1 | plan.wide));
  key.add(stage);
  return key;
}

std::string truth(bool v) { return v ? "true" : "false"; }

struct Fold {
  FoldStage stage;
  void* in;
  void* out;
  int64_t count, piece, pieces;
  int width;
  IntList in_strides;  // of the kept dimensions
  IntList folded_sizes, folded_strides;
};

void launch(const GeneratedReduce& call, const ReducePlan& plan, const Fold& fold) {
  const ReduceCall& c = call.call;
  const int device = call.out.device().index;
  StructBytes g;
  for (const int64_t size : c.kept_sizes) g.add_divisor(size, plan.narrow);
  while (g.bytes().size() % 8) g.add(char{0});
  for (const int64_t stride : fold.in_strides) g.add(stride);
  for (const int64_t stride : c.kept_out_strides) g.add(stride);
  for (const int64_t size : fold.folded_sizes) g.add_divisor(size, plan.narrow);
  while (g.bytes().size() % 8) g.add(char{0});
  for (const int64_t stride : fold.folded_strides) g.add(stride);
  Arguments arguments;
  arguments.add_bytes(g.bytes().data(), g.bytes().size(), 8).add(fold.in).add(fold.out);
  for (const int64_t value : {c.outputs, fold.count, fold.piece}) {
    if (plan.narrow)
      arguments.add(static_cast<uint32_t>(value));
    else
      arguments.add(static_cast<uint64_t>(value));
  }
  StructBytes divisor;
  divisor.add_number(Scalar(static_cast<double>(c.reduced)), plan.compute);
  arguments.add(fold.width).add_bytes(divisor.bytes().data(), divisor.bytes().size(), 16);
  const int64_t blocks = ceil_of(c.outputs, fold.width);
  check<ErrorKind::Runtime>(blocks < (int64_t{1} << 31), OpName(call.name),
                            "expected at most 2^31 blocks of outputs, got ", blocks);
  GeneratedKernel::of(key_of(call, plan, fold.stage), device, "fold_kernel",
                      [&] { return reduce_source(plan, fold.stage); })
      .launch(device, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(fold.pieces)),
              arguments);
}

}  // namespace

ReducePlan plan_reduce(const GeneratedReduce& call) {
  const ReduceCall& c = call.call;
  ReducePlan plan;
  plan.expressions = call.parts;
  plan.in = c.in_dtype;
  plan.out = c.out_dtype;
  plan.compute = c.compute;
  plan.kept = static_cast<int>(c.kept_sizes.size());
  plan.folded = static_cast<int>(c.reduced_sizes.size());
  const int64_t item = item_size(c.in_dtype);
  const int64_t* const kept[] = {c.kept_in_strides.data(), c.kept_out_strides.data()};
  const int64_t* const folded[] = {c.reduced_in_strides.data()};
  plan.narrow = is_narrow(c.outputs, c.kept_sizes, kept, 2) &&
                is_narrow(c.reduced, c.reduced_sizes, folded, 1);
  plan.rows = plan.folded == 1 && (c.reduced_in_strides[0] == item || c.reduced == 1);
  plan.wide = plan.rows && is_wide(call);
  if (plan.rows) {
    // A thread takes four packs at a time.
    const int64_t pack = std::max<int64_t>(1, 16 / item);
    plan.width = static_cast<int>(kThreads / threads_for(c.reduced / (4 * pack)));
  } else {
    // Neighbouring threads take neighbouring outputs, if the outputs' elements are closest
    // together.
    const bool outputs_close =
        std::abs(c.kept_in_strides.back()) <= std::abs(c.reduced_in_strides.back());
    plan.width =
        static_cast<int>(threads_for(std::min<int64_t>(c.outputs, outputs_close ? 32 : 1)));
  }
  const int64_t lanes = kThreads / plan.width, blocks = ceil_of(c.outputs, plan.width);
  const int64_t per_lane = ceil_of(c.reduced, lanes);
  const int64_t wanted = std::min(ceil_of(kManyBlocks, blocks), per_lane / 64);
  plan.piece = c.reduced;
  if (wanted > 1) {
    // Whole packs, so that all pieces are aligned as the first is.
    plan.piece = ceil_of(ceil_of(c.reduced, wanted), lanes * 16) * lanes * 16;
    plan.pieces = ceil_of(c.reduced, plan.piece);
  }
  return plan;
}

std::string reduce_source(const ReducePlan& plan, FoldStage stage) {
  static constexpr ExpressionNode kAcc[] = {{ExpressionKind::Name, 0, {}, "acc", 0, 0}};
  const ReduceExpressions& parts = *plan.expressions;
  std::string source = "#include \"aten/backend/cuda/device/reduce.cuh\"\n\n";
  source += "namespace treadle::simd::N_CUDA {\nstruct Function {\n";
  source += "  static constexpr bool starts = " + truth(static_cast<bool>(parts.init)) + ";\n";
  if (parts.init) source += function_text("init", {}, parts.init);
  source += function_text("step", {"acc", "x"}, parts.step);
  source += function_text("combine", {"a", "b"}, parts.combine);
  source += function_text("final", {"acc", "n"}, parts.final ? parts.final : Expression{kAcc, 1});
  source += "};\n}  // namespace treadle::simd::N_CUDA\n\nusing namespace treadle::cuda;\n";
  source += "using treadle::simd::N_CUDA::Function;\n\n";
  const bool joins = stage == FoldStage::Join, pieces = stage == FoldStage::Pieces;
  const std::string index = plan.narrow ? "unsigned" : "unsigned long long";
  const std::string compute = type_name(plan.compute);
  const std::string folded = std::to_string(joins ? 1 : plan.folded);
  source += "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(kThreads) +
            ") fold_kernel(const FoldGeometry<" + index + ", " + std::to_string(plan.kept) + ", " +
            folded + "> g, const char* in, char* out, const " + index + " outputs, const " + index +
            " count, const " + index + " piece, const int width, const " + compute +
            " divisor) {\n";
  // Results of pieces follow each other, one output's after another's.
  source += "  fold<Function, " + compute + ", " + truth(joins) + ", " + truth(joins || plan.rows) +
            ", " + truth(!joins && plan.wide) + ", " + truth(!pieces) + ", " +
            type_name(joins ? plan.compute : plan.in) + ", " +
            type_name(pieces ? plan.compute : plan.out) + ">";
  return source + "(g, in, out, outputs, count, piece, width, divisor);\n}\n";
}

bool run_reduce(const GeneratedReduce& call) {
  const ReduceCall& c = call.call;
  if (c.kept_sizes.size() > kMaxReduceDims || c.reduced_sizes.size() > kMaxReduceDims) return false;
  const DeviceGuard guard(call.out.device().index);
  const ReducePlan plan = plan_reduce(call);
  Fold fold{FoldStage::Whole, call.in.data(),      call.out.data(), c.reduced,
            plan.piece,       plan.pieces,         plan.width,      c.kept_in_strides,
            c.reduced_sizes,  c.reduced_in_strides};
  if (plan.pieces == 1) {
    launch(call, plan, fold);
    return true;
  }
  const Tensor results = empty_tensor({c.outputs, plan.pieces}, plan.compute, call.out.device());
  fold.stage = FoldStage::Pieces;
  fold.out = results.data();
  launch(call, plan, fold);
  // The outputs' strides in the results, for the merged kept dimensions.
  DimVector strides(c.kept_sizes.size());
  int64_t stride = plan.pieces * results.element_size();
  for (size_t d = strides.size(); d-- > 0; stride *= c.kept_sizes[d]) strides[d] = stride;
  const DimVector sizes = {plan.pieces}, steps = {results.element_size()};
  const int lanes = static_cast<int>(threads_for(plan.pieces / 4));
  launch(call, plan,
         {FoldStage::Join, results.data(), call.out.data(), plan.pieces, plan.pieces, 1,
          static_cast<int>(kThreads) / lanes, strides, sizes, steps});
  return true;
}

}  // namespace treadle::cuda
