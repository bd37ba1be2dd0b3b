// The pointwise engine. Most calls are small, contiguous and of one dtype. They take a path without
// any list. The others go through promotion, broadcasting and the geometry of a loop.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/pointwise.h"

#include <algorithm>

#include "aten/engine/backends/generated.h"
#include "aten/engine/contract.h"
#include "aten/engine/copy.h"
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

// The dtypes of the computation and of its result.
struct Types {
  ScalarType cell;     // names the kernel
  ScalarType compute;  // what the kernel's loop sees
  ScalarType result;

  bool operator==(const Types&) const = default;
};

Types types_for(Promote promote, ScalarType common) {
  switch (promote) {
    case Promote::Float:
      if (is_integral(common, true)) common = default_dtype();
      break;
    case Promote::Compare:
      return {common, compute_of(common), ScalarType::Bool};
    case Promote::Bool:
      return {common, ScalarType::Bool, ScalarType::Bool};
    case Promote::Real:
      return {common, compute_of(common), to_real(common)};
    case Promote::Common:
    case Promote::None:
      break;
  }
  return {common, compute_of(common), common};
}

// Whether the kernel may throw with some elements written. A division by a number that is not 0
// does not.
bool may_stop_half_way(const PointwiseOp& op, const Types& types, ArrayRef<Scalar> scalars) {
  if (!contract::has_dtype(op.throws, types.compute)) return false;
  if (op.divisors == 0) return true;
  for (size_t k = 0; k < scalars.size(); ++k)
    if ((op.divisors >> k & 1) != 0 && !scalars[k].to<bool>()) return true;
  return false;
}

// ---- one-dtype contiguous operands
// --------------------------------------------------------------------------------------

constexpr int scalar_rank(const Scalar& s) { return static_cast<int>(s.kind()); }
static_assert(static_cast<int>(Scalar::Kind::Bool) == 0 &&
              static_cast<int>(Scalar::Kind::Complex) == 3);

// Whether an integer dtype holds an integer; unsigned ones take the negative of what they hold, as
// Scalar::checked_to does.
constexpr bool holds(ScalarType t, int64_t v) {
  const size_t size = item_size(t);
  if (size == 8) return true;
  const bool is_unsigned =
      t == ScalarType::UInt8 || t == ScalarType::UInt16 || t == ScalarType::UInt32;
  const int64_t high = (int64_t{1} << (8 * size - (is_unsigned ? 0 : 1))) - 1;
  return v <= high && v >= (is_unsigned ? -high : -high - 1);
}
bool holds(ScalarType t, const Scalar& s) {
  if (!is_integral(t, false) || !s.is_integral()) return true;
  return s.exceeds_int64() ? t == ScalarType::UInt64 : holds(t, s.to<int64_t>());
}

constexpr int64_t kItemStrides[] = {1, 2, 4, 8, 16};
const int64_t* stride_of_item(ScalarType t) {
  return &kItemStrides[std::countr_zero(static_cast<uint64_t>(item_size(t)))];
}

// The input whose shape the result has, when all inputs are contiguous tensors on the device, of
// one dtype and of that shape or 0-dim, and no number raises the dtype; null otherwise.
const Tensor* find_simple(Device device, Promote promote, TensorRefs inputs,
                          ArrayRef<Scalar> scalars, uint32_t promoting) {
  const Tensor* shape = inputs[0];
  if (contract::kChecked && !shape->defined()) return nullptr;
  const ScalarType dtype = shape->dtype();
  for (const Tensor* input : inputs) {
    const TensorImpl* const t = input->impl();
    if (contract::kChecked &&
        (t == nullptr || t->device() != device || t->layout() != Layout::Strided)) {
      return nullptr;
    }
    if (t->dtype() != dtype || !t->is_contiguous() || t->is_wrapped_number()) return nullptr;
    if (t == shape->impl() || t->dim() == 0) continue;
    if (!contract::kChecked || t->sizes() == shape->sizes()) continue;
    if (shape->dim() != 0) return nullptr;
    shape = input;
  }
  const int rank = kind_rank(dtype);
  for (const Scalar& s : scalars) {
    if (scalar_rank(s) > rank || s.exceeds_int64()) return nullptr;
    if (rank == scalar_rank(s) && !holds(dtype, s)) return nullptr;
  }
  if (rank < 2 && promote == Promote::Float) return nullptr;
  // 16-bit comparisons round their scalars first, which is left to the general path.
  const bool rounds = promoting != 0 && promote == Promote::Compare && item_size(dtype) == 2;
  return rounds ? nullptr : shape;
}

void run_simple(void* kernel, const Types& types, TensorRefs inputs, ArrayRef<Scalar> scalars,
                const Tensor& out) {
  static constexpr int64_t kZero = 0;
  const int64_t numel = out.numel();
  if (numel == 0) return;
  PointwiseCall call;
  const ScalarType dtype = inputs[0]->dtype();
  const int64_t* const in_stride = stride_of_item(dtype);
  bool broadcast = false;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const bool one = inputs[k]->numel() != numel;
    call.in[k] = {static_cast<char*>(inputs[k]->data()), one ? &kZero : in_stride, dtype};
    broadcast = broadcast || one;
  }
  call.out = {static_cast<char*>(out.data()), stride_of_item(types.result), types.result};
  call.shape = &numel;
  call.dims = 1;
  call.inputs = static_cast<int>(inputs.size());
  call.scalars = scalars.data();
  call.scalar_count = static_cast<int>(scalars.size());
  call.compute = types.compute;
  call.direct = !broadcast && dtype == types.compute &&
                (types.result == dtype || types.result == ScalarType::Bool);
  call.numel = numel;
  reinterpret_cast<PointwiseKernel*>(kernel)(call);
}

// ---- the general path ----

// Shapes as text: (3,), (2, 1) and (4,).
struct ShapesOf {
  TensorRefs inputs;
};
std::string to_string(const ShapesOf& shapes) {
  std::string text = str(shapes.inputs[0]->sizes());
  for (size_t i = 1; i < shapes.inputs.size(); ++i)
    text += str(i + 1 == shapes.inputs.size() ? " and " : ", ", shapes.inputs[i]->sizes());
  return text;
}

// The size of dimension d, counted from the last, of what the inputs broadcast to.
int64_t size_of_all(const char* op, TensorRefs inputs, size_t d) {
  int64_t size = 1;
  for (const Tensor* t : inputs) {
    const IntList sizes = t->sizes();
    if (d >= sizes.size()) continue;
    check<ErrorKind::Runtime>(broadcast_size(size, sizes[sizes.size() - 1 - d]), OpName(op),
                              "expected shapes that broadcast, got ", ShapesOf{inputs});
  }
  return size;
}

size_t broadcast_rank(TensorRefs inputs) {
  size_t rank = 0;
  for (const Tensor* t : inputs) rank = std::max(rank, t->sizes().size());
  return rank;
}

// The same checks as making the shape, before there is one that an exception would have to destroy.
void require_broadcast(const char* op, TensorRefs inputs) {
  for (size_t d = 0; d < broadcast_rank(inputs); ++d) size_of_all(op, inputs, d);
}

DimVector broadcast_shape(const char* op, TensorRefs inputs) {
  const size_t rank = broadcast_rank(inputs);
  DimVector shape(rank);
  for (size_t d = 0; d < rank; ++d) shape[rank - 1 - d] = size_of_all(op, inputs, d);
  return shape;
}

// The device of the result. 0-dim tensors of the CPU go with any device.
Device device_of(const char* op, TensorRefs inputs) {
  Device device = kCPU;
  bool decided = false;
  for (const Tensor* t : inputs) {
    const Device d = t->device();
    if (t->dim() == 0 && d.is_cpu()) continue;
    check<ErrorKind::Runtime>(!decided || d == device, OpName(op),
                              "expected all tensors on one device, got ", device, " and ", d);
    device = d;
    decided = true;
  }
  return device;
}

// A kernel for the cell must exist before anything is written; on the meta device, too, which
// answers as the CPU does.
void require_kernel(const PointwiseOp& op, Device device, ScalarType cell) {
  if (device.is_meta()) device = kCPU;
  if (op.op->table().find(device, Layout::Strided, cell) != nullptr) return;
  if (find_boxed(*op.op, device, Layout::Strided, cell) != nullptr) return;
  no_kernel(*op.op, device, Layout::Strided, cell);
}

// A number beside integers is one of them: it wraps only where sums and products wrap, too.
void require_numbers_fit(const PointwiseOp& op, TensorRefs inputs, ArrayRef<Scalar> scalars,
                         uint32_t promoting, ScalarType compute) {
  if (!is_integral(compute, false)) return;
  const auto require = [&](const Scalar& s, bool operand) {
    if (holds(compute, s)) [[likely]]
      return;
    check<ErrorKind::Runtime>(operand && !s.exceeds_int64() && op.keeps_low_bits, OpName(op.name),
                              "expected a number that fits ", name_of(compute), ", got ", s);
  };
  for (size_t s = 0; s < scalars.size(); ++s) require(scalars[s], promoting >> s & 1);
  for (const Tensor* t : inputs) {
    if (!t->impl()->is_wrapped_number() || !t->is_cpu()) continue;
    if (t->dtype() == ScalarType::UInt64) require(Scalar(*t->data_as<uint64_t>()), true);
    if (t->dtype() == ScalarType::Int64) require(Scalar(*t->data_as<int64_t>()), true);
  }
}

// One call, of any form, with everything about it decided.
struct Prepared {
  Types types;
  DimVector shape;
  Device device;
  bool same_shapes = true;  // no operand is broadcast
};

[[gnu::always_inline]] inline Prepared prepare(const PointwiseOp& op, TensorRefs inputs,
                                               ArrayRef<Scalar> scalars, uint32_t promoting) {
  check_internal(!inputs.empty() && inputs.size() <= kMaxPointwiseInputs,
                 "a pointwise operator has one to six tensors");
  Promotion promotion;
  for (const Tensor* t : inputs) {
    check<ErrorKind::Type>(t->defined(), OpName(op.name), "expected a tensor, got None");
    promotion.add(*t);
    check<ErrorKind::Type>(op.promote != Promote::None || t->dtype() == inputs[0]->dtype(),
                           OpName(op.name), "expected tensors of one dtype, got ",
                           inputs[0]->dtype(), " and ", t->dtype());
  }
  const ScalarType of_tensors = promotion.result();
  for (size_t s = 0; s < scalars.size(); ++s) {
    if (promoting >> s & 1) promotion.add(scalars[s]);
  }
  // A number does not lift tensors into the dtypes of an operator that has none for them.
  if (op.promote != Promote::Float && promotion.result() != of_tensors)
    require_kernel(op, device_of(op.name, inputs), of_tensors);
  const Device device = device_of(op.name, inputs);
  const Types types =
      types_for(op.promote, op.promote == Promote::None ? inputs[0]->dtype() : promotion.result());
  require_broadcast(op.name, inputs);
  require_kernel(op, device, types.cell);
  Prepared p;
  p.types = types;
  p.device = device;
  p.shape = broadcast_shape(op.name, inputs);
  for (const Tensor* t : inputs) p.same_shapes = p.same_shapes && t->sizes() == IntList(p.shape);
  require_numbers_fit(op, inputs, scalars, promoting, p.types.compute);
  // A number beside the operands must be of their kind: alpha of an integer sum is an integer.
  const int rank = kind_rank(p.types.cell);
  for (size_t s = 0; s < scalars.size(); ++s) {
    if (promoting >> s & 1) continue;
    check<ErrorKind::Runtime>(scalar_rank(scalars[s]) <= std::max(rank, 1), OpName(op.name),
                              "expected ", rank <= 1 ? "an integer" : "a real number",
                              " beside tensors of dtype ", p.types.cell, ", got ", scalars[s]);
  }
  return p;
}

// The strides of a new result: those of the inputs where they agree, so that a permuted input gives
// a permuted result.
DimVector result_strides(const Prepared& p, TensorRefs inputs) {
  DimVector seen[kMaxPointwiseInputs];
  bool all_contiguous = true;
  for (size_t k = 0; k < inputs.size(); ++k) {
    seen[k] = broadcast_strides(p.shape, inputs[k]->sizes(), inputs[k]->strides());
    all_contiguous =
        all_contiguous && inputs[k]->is_contiguous() && inputs[k]->sizes() == IntList(p.shape);
  }
  if (all_contiguous) return contiguous_strides(p.shape);
  const DimVector order = memory_order(p.shape, seen, static_cast<int>(inputs.size()));
  return dense_strides(p.shape, order);
}

Tensor new_result(const Prepared& p, TensorRefs inputs) {
  checked_numel(p.shape, item_size(p.types.result));
  return empty_strided_tensor(p.shape, result_strides(p, inputs), p.types.result, p.device);
}

// The scalars as the kernel takes them: a comparison sees them rounded to the operands' dtype.
void round_scalars(const Prepared& p, Promote promote, ArrayRef<Scalar>& scalars,
                   uint32_t promoting, Scalar* rounded) {
  if (promote != Promote::Compare || item_size(p.types.cell) != 2 || !is_floating(p.types.cell))
    return;
  for (size_t s = 0; s < scalars.size(); ++s) {
    rounded[s] = scalars[s];
    if (!(promoting >> s & 1)) continue;
    rounded[s] = p.types.cell == ScalarType::Float16 ? Scalar(scalars[s].to<Half>())
                                                     : Scalar(scalars[s].to<BFloat16>());
  }
  scalars = ArrayRef<Scalar>(rounded, scalars.size());
}

// put(argument) for each tensor and number of a call, in the order and of the types of the schema.
template <class Put>
void each_argument(const Operator& op, TensorRefs inputs, ArrayRef<Scalar> scalars, Put&& put) {
  size_t next_tensor = 0, next_scalar = 0;
  for (const schema::Argument& a : op.schema().arguments) {
    if (a.type.is_tensor()) {
      put(*inputs[next_tensor++]);
      continue;
    }
    const Scalar& s = scalars[next_scalar++];
    switch (a.type.base) {
      case schema::BaseType::Bool:
        put(s.to<bool>());
        break;
      case schema::BaseType::Int:
        put(s.to<int64_t>());
        break;
      case schema::BaseType::Float:
        put(s.to<double>());
        break;
      default:
        put(s);
        break;
    }
  }
}

// Calls a boxed kernel with the arguments and then the output, which is contiguous and of the
// result's dtype.
void run_boxed(const Operator& op, const BoxedKernel& kernel, ScalarType result, TensorRefs inputs,
               ArrayRef<Scalar> scalars, const Tensor& out) {
  const bool fits = out.is_contiguous() && out.dtype() == result;
  const Tensor filled = fits ? out : empty_tensor(out.sizes(), result, out.device());
  if (kernel.fill != nullptr) {
    BorrowedValue arguments[kMaxPointwiseInputs + kMaxPointwiseScalars + 1];
    size_t count = 0;
    each_argument(op, inputs, scalars,
                  [&](const auto& argument) { arguments[count++] = borrowed(argument); });
    arguments[count++] = borrowed(filled);
    kernel.fill(kernel.context, op, {arguments, count});
  } else {
    Stack stack;
    each_argument(op, inputs, scalars,
                  [&](const auto& argument) { stack.push_back(Value(argument)); });
    stack.push_back(Value(filled));
    kernel(op, stack);
  }
  if (!fits) copy_strided(out, filled);
}

// An operand as a backend's own kernel gets it: of the dtype that the call computes for, on the
// device, of the result's shape.
Tensor fitted(const Prepared& p, const Tensor& t) {
  Tensor operand = t;
  if (t.dtype() != p.types.cell || t.device() != p.device) {
    operand = empty_tensor(t.sizes(), p.types.cell, p.device);
    copy_strided(operand, t);
  }
  if (operand.sizes() == IntList(p.shape)) return operand;
  return alias_with_geometry(operand, p.shape,
                             broadcast_strides(p.shape, operand.sizes(), operand.strides()),
                             operand.storage_offset());
}

// The kernel that a backend registered; null where it has none.
const BoxedKernel* native_kernel(const PointwiseOp& op, Device device, ScalarType cell) {
  const KernelRow* const row = op.op->table().row(device.type, Layout::Strided);
  return row ? row->boxed[static_cast<size_t>(cell)] : nullptr;
}

// A call on a backend's device: by its own kernel, by one that it generates, or by the fallback.
void run_on_backend(const PointwiseOp& op, const Prepared& p, TensorRefs inputs,
                    ArrayRef<Scalar> scalars, const Tensor& out) {
  const BoxedKernel* const native = native_kernel(op, p.device, p.types.cell);
  if (native == nullptr) {
    LoopGeometry g(p.shape);
    g.add(broadcast_strides(p.shape, out.sizes(), out.strides()), out.element_size());
    for (const Tensor* t : inputs)
      g.add(broadcast_strides(p.shape, t->sizes(), t->strides()), t->element_size());
    g.order();
    if (run_generated(*op.op, out, g.strides[0], inputs, g.strides + 1, scalars, g.shape,
                      p.types.compute)) {
      count_call(p.device.type, *op.op, CallRoute::Generated);
      return;
    }
  }
  const BoxedKernel* const boxed = find_boxed(*op.op, p.device, out.layout(), p.types.cell);
  if (boxed == nullptr) no_kernel(*op.op, p.device, out.layout(), p.types.cell);
  Tensor operands[kMaxPointwiseInputs];
  const Tensor* given[kMaxPointwiseInputs];
  for (size_t k = 0; native != nullptr && k < inputs.size(); ++k) {
    operands[k] = fitted(p, *inputs[k]);
    given[k] = &operands[k];
  }
  if (native != nullptr) inputs = TensorRefs(given, inputs.size());
  run_boxed(*op.op, *boxed, p.types.result, inputs, scalars, out);
}

// The result of a simple call on a backend's device, by a kernel of the backend's own; undefined
// where the call is another.
Tensor try_backend(const PointwiseOp& op, TensorRefs inputs, ArrayRef<Scalar> scalars,
                   uint32_t promoting) {
  if (!any_backend() || !inputs[0]->defined() || inputs[0]->is_cpu()) return {};
  const Device device = inputs[0]->device();
  const Tensor* const shape = find_simple(device, op.promote, inputs, scalars, promoting);
  if (shape == nullptr || shape->numel() == 0) return {};
  for (const Tensor* t : inputs)
    if (t->sizes() != shape->sizes()) return {};
  const Types types = types_for(op.promote, shape->dtype());
  const BoxedKernel* const native = native_kernel(op, device, types.cell);
  // Numbers that are not of the operands' kind are refused by prepare().
  if (native == nullptr || types.cell != shape->dtype()) return {};
  Tensor out = empty_tensor(shape->sizes(), types.result, device);
  run_boxed(*op.op, *native, types.result, inputs, scalars, out);
  return out;
}

// Whether a large operand's memory runs along another dimension than the result's (a transposed
// matrix): it is put in order first, tile by tile, which costs less than a walk that touches a
// cache line for each element.
bool runs_across(const Tensor& out, const Tensor& t) {
  constexpr int64_t kLarge = 64 * 1024;
  if (t.numel() < kLarge || !t.is_cpu() || !out.is_cpu() || t.sizes() != out.sizes()) return false;
  size_t out_runs = 0, t_runs = 0, found = 0;
  for (size_t d = 0; d < t.sizes().size(); ++d) {
    if (t.sizes()[d] == 1) continue;
    if (out.strides()[d] == 1) out_runs = d, ++found;
    if (t.strides()[d] == 1) t_runs = d, ++found;
  }
  return found == 2 && out_runs != t_runs;
}

void run_general(const PointwiseOp& op, const Prepared& p, TensorRefs inputs,
                 ArrayRef<Scalar> scalars, uint32_t promoting, const Tensor& out) {
  if (p.device.is_meta() || out.numel() == 0) return;
  for (const Tensor* t : inputs) {
    check<ErrorKind::Runtime>(t->device() == p.device || (t->is_cpu() && t->dim() == 0),
                              OpName(op.name), "expected all tensors on one device, got ", p.device,
                              " and ", t->device());
  }
  Scalar rounded[kMaxPointwiseScalars];
  round_scalars(p, op.promote, scalars, promoting, rounded);
  void* const kernel = op.op->table().find(p.device, out.layout(), p.types.cell);
  if (kernel == nullptr) {
    run_on_backend(op, p, inputs, scalars, out);
    return;
  }
  LoopGeometry g(p.shape);
  g.add(broadcast_strides(p.shape, out.sizes(), out.strides()), out.element_size());
  Tensor straightened[kMaxPointwiseInputs];
  const Tensor* straight[kMaxPointwiseInputs];
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Tensor& t = *inputs[k];
    straight[k] = &t;
    if (runs_across(out, t)) {
      straightened[k] = empty_strided_tensor(t.sizes(), out.strides(), t.dtype(), kCPU);
      copy_strided(straightened[k], t);
      straight[k] = &straightened[k];
    }
    g.add(broadcast_strides(p.shape, straight[k]->sizes(), straight[k]->strides()),
          t.element_size());
  }
  inputs = TensorRefs(straight, inputs.size());
  g.order();
  PointwiseCall call;
  call.out = {static_cast<char*>(out.data()), g.strides[0].data(), out.dtype()};
  call.inputs = static_cast<int>(inputs.size());
  const ScalarType block_result = op.promote == Promote::Compare || op.promote == Promote::Bool
                                      ? ScalarType::Bool
                                      : p.types.compute;
  const auto contiguous = [&](const DimVector& strides, int64_t item) {
    return strides.size() == 1 && strides[0] == item;
  };
  call.direct = out.dtype() == block_result && contiguous(g.strides[0], out.element_size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    call.in[k] = {static_cast<char*>(inputs[k]->data()), g.strides[k + 1].data(),
                  inputs[k]->dtype()};
    call.direct = call.direct && inputs[k]->dtype() == p.types.compute &&
                  contiguous(g.strides[k + 1], inputs[k]->element_size());
  }
  call.shape = g.shape.data();
  call.dims = static_cast<int>(g.shape.size());
  call.scalars = scalars.data();
  call.scalar_count = static_cast<int>(scalars.size());
  call.compute = p.types.compute;
  call.numel = out.numel();
  reinterpret_cast<PointwiseKernel*>(kernel)(call);
}

// ---- calls that wait ----

// Whether nothing but the generated loop for the CPU would run, which cannot fail.
bool can_wait(const PointwiseOp& op, const Types& types, ArrayRef<Scalar> scalars) {
  void* const kernel = op.op->table().find(kCPU, Layout::Strided, types.cell);
  return op.cpu_kernel != nullptr && kernel == reinterpret_cast<void*>(op.cpu_kernel) &&
         !may_stop_half_way(op, types, scalars);
}

// Whether so many elements are worth waiting for. So are fewer, of what waits: a look would compute
// that.
bool is_worth_waiting(int64_t least, int64_t numel, TensorRefs inputs) {
  if (numel >= least) return numel != 0;
  for (const Tensor* t : inputs)
    if (t->defined() && t->storage()->needs_care()) return numel != 0;
  return false;
}

// The pending result of a simple call; undefined where it must run now.
[[gnu::cold]] Tensor try_defer_simple(const PointwiseOp& op, const Types& types, TensorRefs inputs,
                                      ArrayRef<Scalar> scalars, const Tensor& shape) {
  if (!can_wait(op, types, scalars)) return {};
  return deferral().pointwise({op, types.compute, types.result, inputs, scalars, shape.sizes(),
                               contiguous_strides(shape.sizes())});
}

// The same of any call.
[[gnu::cold]] Tensor try_defer(const PointwiseOp& op, const Prepared& p, TensorRefs inputs,
                               ArrayRef<Scalar> scalars, uint32_t promoting, int64_t least) {
  const int64_t numel = checked_numel(p.shape, item_size(p.types.result));
  if (!p.device.is_cpu() || !is_worth_waiting(least, numel, inputs) ||
      !can_wait(op, p.types, scalars)) {
    return {};
  }
  Scalar rounded[kMaxPointwiseScalars];
  round_scalars(p, op.promote, scalars, promoting, rounded);
  return deferral().pointwise(
      {op, p.types.compute, p.types.result, inputs, scalars, p.shape, result_strides(p, inputs)});
}

// Whether the call that writes self waits.
[[gnu::cold]] bool try_defer_inplace(const PointwiseOp& op, TensorRefs inputs,
                                     ArrayRef<Scalar> scalars, uint32_t promoting) {
  const Tensor& self = *inputs[0];
  if (!self.defined() || !self.is_cpu() || self.numel() < least_deferred()) return false;
  PointwiseOp shown = op;
  const std::string name = std::string(op.name) + "_";
  shown.name = name.c_str();
  const Prepared p = prepare(shown, inputs, scalars, promoting);
  if (IntList(p.shape) != self.sizes() || p.types.result != self.dtype() || !p.device.is_cpu() ||
      !can_wait(op, p.types, scalars)) {
    return false;
  }
  Scalar rounded[kMaxPointwiseScalars];
  round_scalars(p, op.promote, scalars, promoting, rounded);
  if (!deferral().pointwise_inplace(
          {op, p.types.compute, p.types.result, inputs, scalars, p.shape, self.strides()})) {
    return false;
  }
  self.impl()->bump_version();
  return true;
}

// Whether the result must be made apart from the target and copied: its memory meets an input's in
// a way not seen through, or the kernel may throw. RuntimeError where they overlap in part.
bool needs_temporary(const PointwiseOp& op, const char* shown_name, const Prepared& p,
                     TensorRefs inputs, ArrayRef<Scalar> scalars, const Tensor& out) {
  bool temporary = may_stop_half_way(op, p.types, scalars);
  for (const Tensor* t : inputs) {
    const Overlap o = overlap_of(out, *t);
    check<ErrorKind::Runtime>(o != Overlap::Partial, OpName(shown_name),
                              "expected memory to write that is an input's own or apart from it, "
                              "got tensors that overlap in part; "
                              "clone() one of them first");
    temporary = temporary || o == Overlap::Unknown;
  }
  return temporary;
}

// Writes `out`, which gets the result's shape once nothing can fail any more.
void write_to(const PointwiseOp& op, const Prepared& p, TensorRefs inputs, ArrayRef<Scalar> scalars,
              uint32_t promoting, const Tensor& out, bool temporary) {
  if (temporary && !p.device.is_meta()) {
    const Tensor fresh = new_result(p, inputs);
    run_general(op, p, inputs, scalars, promoting, fresh);
    resize_out(op.name, out, p.shape);
    copy_strided(out, fresh);
  } else if (out.sizes() == IntList(p.shape)) {
    run_general(op, p, inputs, scalars, promoting, out);
  } else {
    resize_out(op.name, out, p.shape);
    // It may have waited for other threads, which may have changed the inputs.
    const Prepared now = prepare(op, inputs, scalars, promoting);
    check<ErrorKind::Runtime>(IntList(now.shape) == IntList(p.shape) && now.types == p.types,
                              OpName(op.name),
                              "expected inputs that stay as they are while out is resized, got "
                              "one that another thread changed");
    run_general(op, now, inputs, scalars, promoting, out);
  }
  out.impl()->bump_version();
}

}  // namespace

Tensor pointwise(const PointwiseOp& op, TensorRefs inputs, ArrayRef<Scalar> scalars,
                 uint32_t promoting) {
  if (const Tensor* shape = find_simple(kCPU, op.promote, inputs, scalars, promoting)) [[likely]] {
    const Types types = types_for(op.promote, shape->dtype());
    if (void* kernel = op.op->table().find(kCPU, Layout::Strided, types.cell)) [[likely]] {
      const int64_t least = least_deferred();
      if (least != kDeferNever && is_worth_waiting(least, shape->numel(), inputs)) [[unlikely]] {
        Tensor out = try_defer_simple(op, types, inputs, scalars, *shape);
        if (out.defined()) return out;
      }
      Tensor out = empty_cpu(shape->sizes(), types.result);
      run_simple(kernel, types, inputs, scalars, out);
      return out;
    }
  }
  if (Tensor out = try_backend(op, inputs, scalars, promoting); out.defined()) return out;
  const Prepared p = prepare(op, inputs, scalars, promoting);
  if (const int64_t least = least_deferred(); least != kDeferNever) [[unlikely]] {
    Tensor out = try_defer(op, p, inputs, scalars, promoting, least);
    if (out.defined()) return out;
  }
  Tensor out = new_result(p, inputs);
  run_general(op, p, inputs, scalars, promoting, out);
  return out;
}

void pointwise_out(const PointwiseOp& op, TensorRefs inputs, ArrayRef<Scalar> scalars,
                   uint32_t promoting, const Tensor& out) {
  const Prepared p = prepare(op, inputs, scalars, promoting);
  require_out(op.name, TensorSpec{p.shape, p.types.result, p.device}, out);
  if (out.sizes() == IntList(p.shape))
    require_writable(op.name, out);
  else
    require_resized_apart(op.name, p.shape, out, inputs);
  const bool temporary = needs_temporary(op, op.name, p, inputs, scalars, out);
  write_to(op, p, inputs, scalars, promoting, out, temporary);
}

void pointwise_inplace(const PointwiseOp& op, TensorRefs inputs, ArrayRef<Scalar> scalars,
                       uint32_t promoting) {
  const Tensor& self = *inputs[0];
  if (least_deferred() != kDeferNever) [[unlikely]] {
    if (try_defer_inplace(op, inputs, scalars, promoting)) return;
  }
  const Tensor* const shape = find_simple(kCPU, op.promote, inputs, scalars, promoting);
  if (shape != nullptr && shape->sizes() == self.sizes() && self.storage()->writable()) [[likely]] {
    const Types types = types_for(op.promote, self.dtype());
    bool apart = types.result == self.dtype() && !may_stop_half_way(op, types, scalars);
    const char* const low = self.data_as<const char>();
    const char* const high = low + self.nbytes();
    for (size_t k = 1; k < inputs.size(); ++k) {
      const char* const begin = inputs[k]->data_as<const char>();
      const char* const end = begin + inputs[k]->nbytes();
      apart = apart && (begin >= high || end <= low || (begin == low && end == high));
    }
    void* const kernel = op.op->table().find(kCPU, Layout::Strided, types.cell);
    if (apart && kernel != nullptr) [[likely]] {
      run_simple(kernel, types, inputs, scalars, self);
      self.impl()->bump_version();
      return;
    }
  }
  const std::string name = std::string(op.name) + "_";
  PointwiseOp shown = op;
  shown.name = name.c_str();
  const Prepared p = prepare(shown, inputs, scalars, promoting);
  check<ErrorKind::Runtime>(IntList(p.shape) == self.sizes(), OpName(name),
                            "expected shapes that broadcast to self's ", self.sizes(),
                            ", got a result of shape ", p.shape);
  check<ErrorKind::Runtime>(can_cast(p.types.result, self.dtype()), OpName(name),
                            "expected a result that can be written to self of dtype ", self.dtype(),
                            ", got ", p.types.result);
  require_writable(name.c_str(), self);
  const bool temporary = needs_temporary(shown, name.c_str(), p, inputs, scalars, self);
  write_to(shown, p, inputs, scalars, promoting, self, temporary);
}

}  // namespace treadle
