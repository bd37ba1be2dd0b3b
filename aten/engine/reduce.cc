// The reduction engine: decides dims, dtypes and the result's shape, and passes merged dimensions
// to the kernel.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/reduce.h"

#include "aten/engine/backends/generated.h"
#include "aten/engine/contract.h"
#include "aten/engine/contraction.h"
#include "aten/engine/copy.h"
#include "aten/engine/cpu/reduce_blocks.h"
#include "aten/engine/deferral.h"
#include "aten/engine/loop_geometry.h"
#include "aten/engine/overlap.h"
#include "aten/engine/promotion.h"
#include "aten/engine/structured.h"
#include "core/device/backend.h"
#include "core/dispatch/call_counts.h"
#include "core/schema/function_schema.h"

namespace treadle {
namespace {

struct Plan {
  ScalarType cell;  // names the kernel
  ScalarType compute;
  ScalarType result;
  DimVector dims;   // reduced, sorted
  DimVector sizes;  // of the result
  int64_t reduced = 1;
};

void choose_types(const ReduceOp& op, ScalarType self, std::optional<ScalarType> dtype,
                  Plan& plan) {
  switch (op.promote) {
    case ReducePromote::Same:
      plan.result = self;
      break;
    case ReducePromote::Sum:
      plan.result = dtype                        ? *dtype
                    : self == ScalarType::UInt64 ? self
                    : is_integral(self, true)    ? ScalarType::Int64
                                                 : self;
      break;
    case ReducePromote::Float:
      plan.result = dtype.value_or(self);
      break;
    case ReducePromote::Bool:
      plan.result = self == ScalarType::UInt8 ? self : ScalarType::Bool;
      plan.cell = self;
      plan.compute = ScalarType::Bool;
      return;
  }
  plan.cell = plan.result;
  plan.compute = compute_of(plan.result);
  // A kernel for narrow integers may not exist where the result is asked for in one: it wraps a
  // wide sum.
  if (op.promote == ReducePromote::Sum && is_integral(plan.result, true))
    plan.cell = plan.compute = ScalarType::Int64;
}

Plan make_plan(const ReduceOp& op, const Tensor& self, OptionalIntList dims, bool keepdim,
               std::optional<ScalarType> dtype) {
  check<ErrorKind::Type>(self.defined(), OpName(op.name),
                         "expected a tensor for argument 'self', got None");
  // Truth is asked of no dimension where none is named; sums are then of all.
  DimVector reduced_dims = wrap_dims(op.name, dims, self.dim(), op.promote != ReducePromote::Bool);
  Plan plan;
  choose_types(op, self.dtype(), dtype, plan);
  plan.dims = std::move(reduced_dims);
  std::sort(plan.dims.begin(), plan.dims.end());
  const IntList sizes = self.sizes();
  size_t next = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (next < plan.dims.size() && plan.dims[next] == static_cast<int64_t>(d)) {
      ++next;
      plan.reduced *= sizes[d];
      if (keepdim) plan.sizes.push_back(1);
    } else {
      plan.sizes.push_back(sizes[d]);
    }
  }
  const Device device = self.is_meta() ? kCPU : self.device();
  if (op.op->table().find(device, Layout::Strided, plan.cell) == nullptr &&
      find_boxed(*op.op, device, Layout::Strided, plan.cell) == nullptr) {
    no_kernel(*op.op, device, Layout::Strided, plan.cell);
  }
  if (plan.reduced == 0 && !op.has_identity && checked_numel(plan.sizes) > 0) {
    const std::string text = str("expected a non-empty dimension to reduce, got shape ", sizes);
    if (!dims || dims->empty()) fail<ErrorKind::Runtime>(OpName(op.name), text);
    fail<ErrorKind::Index>(OpName(op.name), text);
  }
  return plan;
}

// The arguments of a reduction: self, dim, keepdim, dtype, out.
constexpr size_t kMaxReduceArguments = 5;

// Calls a boxed kernel: what the call was asked for goes where the schema has it, then the output,
// which is contiguous and of the result's dtype.
void run_boxed(const ReduceOp& op, const BoxedKernel& kernel, const Plan& plan, const Tensor& self,
               const Tensor& out, bool keepdim) {
  const bool fits = out.is_contiguous() && out.dtype() == plan.result;
  const Tensor filled = fits ? out : empty_tensor(out.sizes(), plan.result, out.device());
  const auto each_argument = [&](auto&& put) {
    for (const schema::Argument& a : op.op->schema().arguments) {
      if (a.type.is_tensor())
        put(self);
      else if (a.name == "keepdim")
        put(keepdim);
      else if (a.type.base == schema::BaseType::ScalarType)
        put(plan.result);
      else if (a.type.list)
        put(IntList(plan.dims));
      else
        put(plan.dims[0]);
    }
    put(filled);
  };
  if (kernel.fill != nullptr) {
    BorrowedValue arguments[kMaxReduceArguments];
    check_internal(op.op->schema().arguments.size() < kMaxReduceArguments,
                   "a reduction has at most four arguments");
    size_t count = 0;
    each_argument([&](const auto& argument) { arguments[count++] = borrowed(argument); });
    kernel.fill(kernel.context, *op.op, {arguments, count});
  } else {
    Stack stack;
    each_argument(
        [&]<class T>(const T& argument) { stack.push_back(detail::Box<T>::to(argument)); });
    kernel(*op.op, stack);
  }
  if (!fits) copy_strided(out, filled);
}

void run(const ReduceOp& op, const Plan& plan, const Tensor& self, const Tensor& out);

// By a kernel of the backend's own, which sees the dtype that it was registered for. False where
// there is none.
bool run_native(const ReduceOp& op, const Plan& plan, const Tensor& self, const Tensor& out,
                bool keepdim) {
  const KernelRow* const row = op.op->table().row(self.device().type, Layout::Strided);
  const BoxedKernel* const native = row ? row->boxed[static_cast<size_t>(plan.cell)] : nullptr;
  if (native == nullptr) return false;
  Tensor operand = self;
  if (self.dtype() != plan.cell) {
    operand = empty_tensor(self.sizes(), plan.cell, self.device());
    copy_strided(operand, self);
  }
  run_boxed(op, *native, plan, operand, out, keepdim);
  return true;
}

// A call on a backend's device without a kernel of its own: by one that it generates, or by the
// fallback.
void run_on_backend(const ReduceOp& op, const Plan& plan, const ReduceCall& call,
                    const Tensor& self, const Tensor& out, bool keepdim) {
  const DeviceType device = self.device().type;
  if (plan.reduced == 0) {
    // The result over no elements depends on no data: the CPU computes it.
    const Tensor here = empty_cpu(out.sizes(), plan.result);
    run(op, plan, empty_cpu(self.sizes(), self.dtype()), here);
    copy_strided(out, here);
    count_call(device, *op.op, CallRoute::Generated);
    return;
  }
  if (run_generated(*op.op, call, out, self)) {
    count_call(device, *op.op, CallRoute::Generated);
    return;
  }
  const BoxedKernel* const boxed = find_boxed(*op.op, self.device(), Layout::Strided, plan.cell);
  if (boxed == nullptr) no_kernel(*op.op, self.device(), Layout::Strided, plan.cell);
  run_boxed(op, *boxed, plan, self, out, keepdim);
}

// Runs the kernel; `out` has the plan's sizes, and any strides and dtype.
void run(const ReduceOp& op, const Plan& plan, const Tensor& self, const Tensor& out) {
  if (out.is_meta() || out.numel() == 0) return;
  void* const kernel = op.op->table().find(self.device(), Layout::Strided, plan.cell);
  const bool keepdim = out.dim() == self.dim();
  if (kernel == nullptr && run_native(op, plan, self, out, keepdim)) return;
  DimVector kept_sizes, kept_in, kept_out, reduced_sizes, reduced_in;
  size_t next = 0, out_dim = 0;
  for (size_t d = 0; d < self.sizes().size(); ++d) {
    if (next < plan.dims.size() && plan.dims[next] == static_cast<int64_t>(d)) {
      ++next;
      out_dim += keepdim;
      reduced_sizes.push_back(self.sizes()[d]);
      reduced_in.push_back(self.strides()[d]);
    } else {
      kept_sizes.push_back(self.sizes()[d]);
      kept_in.push_back(self.strides()[d]);
      kept_out.push_back(out.strides()[out_dim++]);
    }
  }
  LoopGeometry kept(kept_sizes), reduced(reduced_sizes);
  kept.add(kept_in, self.element_size());
  kept.add(kept_out, out.element_size());
  reduced.add(reduced_in, self.element_size());
  kept.order();
  reduced.order();
  ReduceCall call;
  call.in = static_cast<const char*>(self.data());
  call.out = static_cast<char*>(out.data());
  call.kept_sizes = kept.shape;
  call.kept_in_strides = kept.strides[0];
  call.kept_out_strides = kept.strides[1];
  call.reduced_sizes = reduced.shape;
  call.reduced_in_strides = reduced.strides[0];
  call.outputs = out.numel();
  call.reduced = plan.reduced;
  call.in_dtype = self.dtype();
  call.out_dtype = out.dtype();
  call.compute = plan.compute;
  if (kernel)
    reinterpret_cast<ReduceKernel*>(kernel)(call);
  else
    run_on_backend(op, plan, call, self, out, keepdim);
}

// ---- calls that wait ----

// Rows of so many elements are folded alike wherever they lie: by one loop, whose order depends on
// their length alone. So are all elements together, piece by piece.
constexpr int64_t kShortestRow = 16, kLongestRow = CheckedFold::kLongestRow;

// Whether nothing but the generated loops for the CPU would run, which cannot fail.
bool runs_generated_loops(const ReduceOp& op, const Plan& plan) {
  void* const kernel = op.op->table().find(kCPU, Layout::Strided, plan.cell);
  return op.cpu_kernel != nullptr && kernel == reinterpret_cast<void*>(op.cpu_kernel) &&
         op.promote != ReducePromote::Bool && !contract::has_dtype(op.throws, plan.compute);
}

// Whether the fold is one that programs have: of elements of the type that they are computed in.
bool is_fold(const ReduceOp& op, const Plan& plan, const Tensor& self) {
  const bool is_last =
      plan.dims.back() == self.dim() - 1 &&
      plan.dims.back() - plan.dims.front() + 1 == static_cast<int64_t>(plan.dims.size());
  if (!is_last || !self.is_contiguous() || plan.reduced < kShortestRow ||
      (plan.reduced > kLongestRow && plan.reduced != self.numel()) ||
      compute_of(self.dtype()) != plan.compute) {
    return false;
  }
  return !op.cpu_blocks().widens || is_integral(plan.compute, true);
}

// The pending result of a call; undefined where it must run now.
[[gnu::cold]] Tensor try_defer(const ReduceOp& op, const Plan& plan, const Tensor& self,
                               bool keepdim) {
  if (plan.dims.empty() || !self.is_cpu() || self.numel() == 0 ||
      (self.numel() < least_deferred() && !self.storage()->needs_care()) ||
      !runs_generated_loops(op, plan)) {
    return {};
  }
  if (self.storage()->needs_care()) {
    if (Tensor out = defer_contraction(
            {op, plan.compute, plan.result, self, plan.sizes, plan.dims, keepdim});
        out.defined()) {
      return out;
    }
  }
  if (!is_fold(op, plan, self)) return {};
  return deferral().fold(
      {op, plan.compute, plan.result, self, plan.sizes, plan.reduced, plan.dims, keepdim});
}

}  // namespace

Tensor reduce(const ReduceOp& op, const Tensor& self, OptionalIntList dims, bool keepdim,
              std::optional<ScalarType> dtype) {
  const Plan plan = make_plan(op, self, dims, keepdim, dtype);
  if (least_deferred() != kDeferNever) [[unlikely]] {
    if (Tensor out = try_defer(op, plan, self, keepdim); out.defined()) return out;
  }
  Tensor out = empty_tensor(plan.sizes, plan.result, self.device());
  run(op, plan, self, out);
  return out;
}

void reduce_out(const ReduceOp& op, const Tensor& self, OptionalIntList dims, bool keepdim,
                std::optional<ScalarType> dtype, const Tensor& out) {
  // Without a dtype asked for, a sum is accumulated in the dtype of `out`.
  if (out.defined() && !dtype && op.promote == ReducePromote::Sum) dtype = out.dtype();
  const Plan plan = make_plan(op, self, dims, keepdim, dtype);
  const Tensor* const inputs[] = {&self};
  Output output(op.name, TensorSpec{plan.sizes, plan.result, self.device()}, out, {inputs, 1});
  if (contract::has_dtype(op.throws, plan.compute)) {
    // An error leaves `out` as it was.
    const Tensor apart = empty_tensor(plan.sizes, plan.result, self.device());
    run(op, plan, self, apart);
    copy_strided(output.tensor(), apart);
  } else {
    run(op, plan, self, output.tensor());
  }
  output.finish();
}

}  // namespace treadle
