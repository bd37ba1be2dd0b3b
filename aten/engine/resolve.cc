// Each argument that needs resolving has a stand-in. Writes of the call are copied back to the
// argument.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/resolve.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "aten/engine/backends/device_copy.h"
#include "aten/engine/overlap.h"
#include "aten/engine/promotion.h"
#include "aten/engine/stored_types.h"
#include "aten/engine/structured.h"
#include "aten/ops/_conj_physical.h"
#include "aten/ops/neg.h"
#include "core/dispatch/dispatcher.h"
#include "core/schema/function_schema.h"

namespace treadle {

Tensor as_bytes_say(const Tensor& t) {
  return alias_as(t, t.dtype(), t.sizes(), t.strides(), t.storage_offset());
}

namespace {

Tensor turned(Tensor t, bool conjugated, bool negated) {
  const ExcludeLayers unrecorded(Layer::Autograd);
  if (conjugated && t.is_complex()) t = aten::_conj_physical(t);
  return negated ? aten::neg(t) : t;
}

}  // namespace

Tensor resolved(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  if (!impl.is_conj() && !impl.is_neg()) return t;
  return turned(as_bytes_say(t), impl.is_conj(), impl.is_neg());
}

Tensor readable(const Tensor& t) {
  if (!needs_resolving(t)) return t;
  const Tensor values = resolved(t);
  return is_stored(values.dtype()) ? computed(values) : values;
}

void copy_resolved(const Tensor& dst, const Tensor& src) {
  if (dst.numel() == 0 || dst.is_meta() || src.is_meta()) return;
  const TensorImpl &to = *dst.impl(), &from = *src.impl();
  const Tensor target = as_bytes_say(dst);
  Tensor values = as_bytes_say(src);
  const bool conjugated = to.is_conj() != from.is_conj(), negated = to.is_neg() != from.is_neg();
  const bool is_turned = (conjugated && values.is_complex()) || negated;
  if (is_stored(values.dtype())) {
    if (!is_turned && values.dtype() == target.dtype())
      return copy_anywhere(as_carriers(target), as_carriers(values));
    values = computed(values);
  }
  if (is_turned) values = turned(std::move(values), conjugated, negated);
  if (is_stored(target.dtype()))
    store(target, values);
  else
    copy_anywhere(target, values);
}

namespace {

// Whether the operator moves the elements of its argument of this number.
bool moves(const Operator& op, size_t argument) { return op.entry().moves >> argument & 1; }

// One call. A call that cannot be done is refused before anything is computed.
class ResolvedCall {
 public:
  ResolvedCall(const Operator& op, Stack& stack)
      : op_(op),
        stack_(stack),
        schema_(op.schema()),
        first_(stack.size() - schema_.arguments.size()) {
    each_tensor([&](size_t, const Tensor& t) {
      if (is_stored(t.dtype())) stored_ = stored_ ? stored_ : std::optional(t.dtype());
    });
  }

  void run() {
    // Recording, casting and profiling were done for the call.
    const ExcludeLayers below(Layer::Autograd);
    if (stored_) choose_way();
    each_tensor([&](size_t i, const Tensor& t) {
      if (schema_.arguments[i].type.writes()) require_writable(op_.info().base_name, t);
    });
    Stack call;
    for (size_t i = 0; i < schema_.arguments.size(); ++i) call.push_back(stand_in(i));
    op_.call_boxed(call);
    std::vector<Tensor> written;
    for (size_t i = 0; i < schema_.arguments.size(); ++i) {
      if (!schema_.arguments[i].type.writes()) continue;
      each_tensor_of(stack_[first_ + i], [&](const Tensor& t) { written.push_back(t); });
    }
    resize_all(written);
    for (const Tensor& t : written) write_back(t);
    stack_.resize(first_);
    for (const Value& v : call) stack_.push_back(result(v));
  }

 private:
  enum class Way { Lazy, Move, Compute };

  template <class F>
  static void each_tensor_of(const Value& v, F&& f) {
    if (v.is<Tensor>() && v.as<Tensor>().defined()) f(v.as<Tensor>());
    if (!v.is<Value::Tensors>()) return;
    for (const Tensor& t : v.as<Value::Tensors>())
      if (t.defined()) f(t);
  }
  template <class F>
  void each_tensor(F&& f) const {
    for (size_t i = 0; i < schema_.arguments.size(); ++i)
      each_tensor_of(stack_[first_ + i], [&](const Tensor& t) { f(i, t); });
  }

  [[noreturn]] void refuse(ScalarType dtype) const {
    fail<ErrorKind::NotImplemented>(
        OpName(op_.info().base_name), "expected tensors of a dtype with arithmetic, got ",
        name_of(dtype), "; its bytes can be seen with .view(treadle.uint8)");
  }

  // Elements are moved as they are where the operator but moves them, and all are of one type.
  bool can_move() const {
    bool fits = op_.entry().moves != 0;
    for (size_t i = 0; i < schema_.arguments.size(); ++i) {
      const Value& v = stack_[first_ + i];
      if (v.is<bool>() && v.as<bool>() && schema_.arguments[i].name == "accumulate") fits = false;
    }
    each_tensor([&](size_t i, const Tensor& t) {
      const bool moved = moves(op_, i) || schema_.arguments[i].type.writes();
      fits = fits && moved == (t.dtype() == *stored_);
    });
    return fits;
  }

  void choose_way() {
    if (can_move()) {
      way_ = Way::Move;
      return;
    }
    way_ = Way::Compute;
    Promotion common;
    each_tensor([&](size_t, const Tensor& t) {
      if (is_stored(t.dtype()) && !is_convertible(t.dtype())) refuse(t.dtype());
      if (is_floating(t.dtype()) || is_complex(t.dtype())) common.add(t);
    });
    rounded_to_ = common.result();
    for (size_t i = first_; i < stack_.size(); ++i)
      if (stack_[i].is<ScalarType>()) rounded_to_ = stack_[i].as<ScalarType>();
    if (is_stored(rounded_to_) && !is_convertible(rounded_to_)) refuse(rounded_to_);
  }

  Value stand_in(size_t i) {
    const Value& v = stack_[first_ + i];
    const bool element = way_ == Way::Move && moves(op_, i);
    if (element && v.is<Scalar>()) return Value(encoded(v.as<Scalar>(), *stored_));
    if (way_ == Way::Compute && v.is<ScalarType>()) return Value(computed_type(v.as<ScalarType>()));
    if (v.is<Tensor>()) return Value(of(v.as<Tensor>()));
    if (!v.is<Value::Tensors>()) return v;
    Value::Tensors list;
    for (const Tensor& t : v.as<Value::Tensors>()) list.push_back(of(t));
    return Value(std::move(list));
  }

  // An out= that needs no stand-in gets one where another does: if that one cannot take its result,
  // none is written.
  bool is_beside_a_stand_in(const Tensor& t) const {
    if (op_.info().form != Form::Out) return false;
    bool is_out = false, others = false;
    each_tensor([&](size_t i, const Tensor& each) {
      if (!schema_.arguments[i].type.writes()) return;
      is_out = is_out || each.is_same(t);
      others = others || needs_resolving(each);
    });
    return is_out && others;
  }

  Tensor of(const Tensor& t) {
    if (!t.defined()) return t;
    if (!needs_resolving(t)) {
      if (!is_beside_a_stand_in(t)) return t;
      Tensor& stand_in = stand_ins_[t.impl()];
      if (!stand_in.defined()) {
        stand_in = empty_tensor({0}, t.dtype(), t.device());
        arguments_[stand_in.impl()] = t;
      }
      return stand_in;
    }
    Tensor& stand_in = stand_ins_[t.impl()];
    if (!stand_in.defined()) {
      stand_in = made_for(t);
      arguments_[stand_in.impl()] = t;
    }
    return stand_in;
  }

  Tensor made_for(const Tensor& t) const {
    Tensor values = t.is_meta() ? as_bytes_say(t) : resolved(t);
    if (!is_stored(values.dtype())) return values;
    if (way_ == Way::Move) return as_carriers(values);
    if (t.is_meta()) return empty_tensor(t.sizes(), computed_type(t.dtype()), kMeta);
    const Tensor wide = computed(values);
    if (t.is_cpu()) return wide;
    const Tensor there = empty_tensor(t.sizes(), wide.dtype(), t.device());
    copy_between_devices(there, wide, false);
    return there;
  }

  // Gives each the sizes of what it will take in, or all keep theirs.
  void resize_all(const std::vector<Tensor>& written) const {
    struct Former {
      Tensor tensor;
      DimVector sizes, strides;
      int64_t offset;
    };
    std::vector<Former> formers;
    try {
      for (const Tensor& t : written) {
        const auto found = stand_ins_.find(t.impl());
        if (found == stand_ins_.end() || found->second.storage() == t.storage()) continue;
        formers.push_back({t, DimVector(t.sizes()), DimVector(t.strides()), t.storage_offset()});
        resize_out(op_.info().base_name, t, found->second.sizes());
      }
    } catch (...) {
      for (const Former& f : formers) f.tensor.impl()->set_geometry(f.sizes, f.strides, f.offset);
      throw;
    }
  }

  void write_back(const Tensor& t) {
    const auto found = stand_ins_.find(t.impl());
    if (found == stand_ins_.end()) return;
    const Tensor& written = found->second;
    TensorImpl& impl = *t.impl();
    if (written.storage() == t.storage()) {
      if (written.sizes() != t.sizes())
        impl.set_geometry(written.sizes(), written.strides(), written.storage_offset());
      return;
    }
    copy_resolved(t, way_ == Way::Move ? from_carriers(written, *stored_) : written);
    impl.bump_version();
  }

  Value result(const Value& v) const {
    if (v.is<Scalar>() && way_ == Way::Move) return Value(decoded(v.as<Scalar>(), *stored_));
    if (v.is<Tensor>()) return Value(result_of(v.as<Tensor>()));
    if (!v.is<Value::Tensors>()) return v;
    Value::Tensors list;
    for (const Tensor& t : v.as<Value::Tensors>()) list.push_back(result_of(t));
    return Value(std::move(list));
  }

  Tensor result_of(const Tensor& t) const {
    if (!t.defined()) return t;
    if (const auto found = arguments_.find(t.impl()); found != arguments_.end())
      return found->second;
    if (way_ == Way::Move && t.dtype() == carrier_type(*stored_)) return from_carriers(t, *stored_);
    if (way_ != Way::Compute || !is_stored(rounded_to_)) return t;
    const ScalarType wide = computed_type(rounded_to_);
    const bool is_part = is_complex(wide) && t.dtype() == to_real(wide);  // an absolute value
    if (t.dtype() != wide && !is_part) return t;
    const ScalarType narrow = is_part ? to_real(rounded_to_) : rounded_to_;
    const Tensor rounded = empty_tensor(t.sizes(), narrow, t.device());
    if (!t.is_meta()) is_stored(narrow) ? copy_resolved(rounded, t) : copy_anywhere(rounded, t);
    return rounded;
  }

  const Operator& op_;
  Stack& stack_;
  const schema::FunctionSchema& schema_;
  size_t first_;
  std::optional<ScalarType> stored_;  // the first such type of an argument
  Way way_ = Way::Lazy;
  ScalarType rounded_to_ =
      ScalarType::Bool;  // of Way::Compute: the dtype of results that are values
  std::unordered_map<TensorImpl*, Tensor> stand_ins_, arguments_;
};

void resolve(const Operator& op, Stack& stack) { ResolvedCall(op, stack).run(); }

[[maybe_unused]] const Registration registered = [] {
  Dispatcher::instance().register_layer_fallback(
      Layer::Resolve, boxed_kernel<&resolve>,
      {KernelSource::Fallback, __FILE__, __LINE__, "resolve"}, Dispatcher::Wraps::Kernels);
  return Registration();
}();

}  // namespace
}  // namespace treadle
