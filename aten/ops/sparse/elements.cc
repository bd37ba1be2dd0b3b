// Pointwise operators on sparse tensors, all of them by one rule.
//
// Elements without an entry are 0. An operator that is 0 where its sparse arguments are 0 computes
// with the values alone. The operator itself is asked whether it is, with zeros. The result of two
// sparse arguments has the entries that both have, if either zero makes the result 0, else the
// entries that any has. Gradients are those of the operator on the values.
//
// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "aten/engine/layouts.h"
#include "aten/engine/promotion.h"
#include "aten/ops/_coo_groups.h"
#include "aten/ops/add.h"
#include "aten/ops/all.h"
#include "aten/ops/cat.h"
#include "aten/ops/copy_.h"
#include "aten/ops/eq.h"
#include "aten/ops/expand.h"
#include "aten/ops/index_select.h"
#include "aten/ops/item.h"
#include "aten/ops/mul.h"
#include "aten/ops/nonzero.h"
#include "aten/ops/ones_like.h"
#include "aten/ops/reshape.h"
#include "aten/ops/slice.h"
#include "aten/ops/sparse/contents.h"
#include "aten/ops/sub.h"
#include "aten/ops/to.h"
#include "aten/ops/to_dense.h"
#include "aten/ops/zeros.h"
#include "core/schema/function_schema.h"

namespace treadle::sparse {
namespace {

// ---- whether an operator is 0 at 0 ----

// Numbers with which the operator is asked. Its expression is one for all numbers.
Tensor probes(ScalarType dtype, Device device) {
  static constexpr double kProbes[] = {1, 0, -1, 0.5, -2.5, 3, 100};
  Tensor t = empty_cpu({std::size(kProbes)}, ScalarType::Float64);
  std::copy(std::begin(kProbes), std::end(kProbes), t.data_as<double>());
  if (dtype == ScalarType::Bool || !is_signed(dtype)) t = aten::mul(t, t);
  return aten::to(t, device, dtype);
}

Stack called(const Operator& op, const Stack& arguments) {
  Stack stack = arguments;
  op.call_boxed(stack);
  return stack;
}

bool is_zero(const Operator& op, const Stack& arguments) {
  const NoGrad unrecorded;
  for (const Value& v : called(op, arguments)) {
    const Tensor t = v.as<Tensor>();
    const Tensor zero = aten::zeros({}, t.dtype(), std::nullopt, t.device());
    if (!aten::item(aten::all(aten::eq(t, zero))).to<bool>()) return false;
  }
  return true;
}

// ---- the entries of two tensors ----

struct JoinedEntries {
  Tensor indices, first, second;  // the places, and the values of each tensor there
};

// The entries that any of two coalesced tensors has, or those that both have.
JoinedEntries joined(const Coo& a, const Coo& b, bool of_both) {
  const auto [indices, groups] =
      aten::_coo_groups(aten::cat({a.indices, b.indices}, 1), a.sparse_sizes());
  const Tensor of_a = aten::slice(groups, 0, 0, a.nnz()), of_b = aten::slice(groups, 0, a.nnz());
  const int64_t count = indices.size(1);
  const JoinedEntries all{indices, grouped(a.values, of_a, count), grouped(b.values, of_b, count)};
  if (!of_both) return all;
  const Tensor ones = aten::ones_like(groups);
  const Tensor kept =
      aten::reshape(aten::nonzero(aten::eq(grouped(ones, groups, count), Scalar(2))), {-1});
  return {aten::index_select(indices, 1, kept), aten::index_select(all.first, 0, kept),
          aten::index_select(all.second, 0, kept)};
}

// ---- the rule ----

class PointwiseCall {
 public:
  PointwiseCall(const Operator& op, Stack& stack)
      : op_(op),
        arguments_(stack.end() - static_cast<int64_t>(op.schema().arguments.size()), stack.end()) {
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (!arguments_[i].is<Tensor>()) continue;
      const Tensor t = arguments_[i].as<Tensor>();
      if (!t.defined()) continue;
      if (!t.is_strided())
        sparse_.push_back(i);
      else if (t.dim() > 0)
        dense_.push_back(i);
    }
  }

  std::optional<Stack> run() {
    if (sparse_.size() > 2) return std::nullopt;
    const Tensor like = at(sparse_[0]);
    for (const size_t i : sparse_) {
      check<ErrorKind::Runtime>(at(i).sizes() == like.sizes() && is_sparse(at(i)), OpName(name()),
                                "expected sparse tensors of one shape, got ",
                                name_of(like.layout()), " of shape ", like.sizes(), " and ",
                                name_of(at(i).layout()), " of shape ", at(i).sizes());
    }
    const bool both = sparse_.size() == 2;
    if (both && !dense_.empty()) return std::nullopt;
    if (!is_broadcast()) return std::nullopt;
    const bool meets = both && annihilates(0) && annihilates(1);
    if (!(both ? meets || is_zero_at_zero() : annihilates(0))) return std::nullopt;
    return both ? of_two(like, meets) : of_one(at(sparse_[0]));
  }

 private:
  const char* name() const { return op_.info().base_name; }
  Tensor at(size_t i) const { return arguments_[i].as<Tensor>(); }

  // Expands the sparse tensor to the shape of the result. False if the shapes are of no result.
  bool is_broadcast() {
    const Tensor like = at(sparse_[0]);
    DimVector sizes(like.sizes());
    for (const size_t i : dense_) {
      const Tensor dense = at(i);
      while (dense.dim() > static_cast<int64_t>(sizes.size())) sizes.insert(0, 1);
      for (int64_t d = 1; d <= dense.dim(); ++d) {
        int64_t& size = sizes[sizes.size() - static_cast<size_t>(d)];
        if (dense.size(-d) == 1 || dense.size(-d) == size) continue;
        if (size != 1) return false;
        size = dense.size(-d);
      }
    }
    if (like.sizes() != IntList(sizes)) arguments_[sparse_[0]] = Value(aten::expand(like, sizes));
    return true;
  }

  Tensor zero(size_t i) const {
    return aten::zeros({1}, at(i).dtype(), std::nullopt, at(i).device());
  }
  // Whether the result is 0 where the sparse argument `which` is 0, whatever the other tensors are.
  bool annihilates(size_t which) const {
    Stack asked = arguments_;
    for (size_t k = 0; k < sparse_.size(); ++k) {
      const size_t i = sparse_[k];
      asked[i] = Value(k == which ? zero(i) : probes(at(i).dtype(), at(i).device()));
    }
    for (const size_t i : dense_) asked[i] = Value(probes(at(i).dtype(), at(i).device()));
    return is_zero(op_, asked);
  }
  bool is_zero_at_zero() const {
    Stack asked = arguments_;
    for (const size_t i : sparse_) asked[i] = Value(zero(i));
    return is_zero(op_, asked);
  }

  // The results of the operator, each with the entries of `coo`.
  Stack results(const Tensor& like, const Coo& coo, const Stack& arguments) const {
    Stack stack = called(op_, arguments);
    for (Value& v : stack) {
      Coo made = coo;
      made.values = v.as<Tensor>();
      v = Value(is_coo(like) ? tensor_of(made) : in_layout_of(name(), like, made));
    }
    return stack;
  }

  Stack of_one(const Tensor& like) const {
    Stack arguments = arguments_;
    const size_t i = sparse_[0];
    if (!is_coo(like) && dense_.empty()) {
      // Entries that lie in order need no coordinates.
      Compressed entries = compressed_of(name(), like);
      arguments[i] = Value(entries.values);
      Stack stack = called(op_, arguments);
      for (Value& v : stack) {
        entries.values = v.as<Tensor>();
        v = Value(tensor_of(entries));
      }
      return stack;
    }
    const Coo coo = coalesced(coo_of(name(), like));
    arguments[i] = Value(coo.values);
    for (const size_t d : dense_)
      arguments[d] = Value(picked(aten::expand(at(d), like.sizes()), coo.indices));
    return results(like, coo, arguments);
  }

  Stack of_two(const Tensor& like, bool meets) const {
    const Coo a = coalesced(coo_of(name(), at(sparse_[0])));
    const Coo b = coalesced(coo_of(name(), at(sparse_[1])));
    check<ErrorKind::Runtime>(a.sparse_dim() == b.sparse_dim(), OpName(name()),
                              "expected as many sparse dimensions, got ", a.sparse_dim(), " and ",
                              b.sparse_dim());
    const JoinedEntries entries = joined(a, b, meets);
    const Coo coo{entries.indices, {}, DimVector(like.sizes()), true};
    Stack arguments = arguments_;
    arguments[sparse_[0]] = Value(entries.first);
    arguments[sparse_[1]] = Value(entries.second);
    return results(like, coo, arguments);
  }

  const Operator& op_;
  Stack arguments_;
  std::vector<size_t> sparse_, dense_;
};

bool by_entry(const Operator& op, Stack& stack) {
  if (op.entry().kind != OperatorKind::Pointwise) return false;
  std::optional<Stack> results = PointwiseCall(op, stack).run();
  if (!results) return false;
  detail::replace_arguments(stack, stack.size() - op.schema().arguments.size(),
                            std::move(*results));
  return true;
}

// ---- sums, also with a strided tensor, whose result is strided ----

Tensor sum_of(const char* op, const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check<ErrorKind::Runtime>(self.sizes() == other.sizes(), OpName(op),
                            "expected the same shape, got ", self.sizes(), " and ", other.sizes());
  if (!is_sparse(other)) return aten::add(aten::to_dense(self), other, alpha);
  const ScalarType dtype = promote_types(self.dtype(), other.dtype());
  const Coo b = coo_of(op, other);
  const bool plain = alpha.equal(1);
  const Tensor values = aten::to(plain ? b.values : aten::mul(b.values, alpha), dtype);
  if (self.is_strided()) return added(aten::to(self, dtype), b.indices, values);
  const Coo a = coo_of(op, self);
  check<ErrorKind::Runtime>(a.sparse_dim() == b.sparse_dim(), OpName(op),
                            "expected as many sparse dimensions, got ", a.sparse_dim(), " and ",
                            b.sparse_dim());
  const Coo sum = coalesced({aten::cat({a.indices, b.indices}, 1),
                             aten::cat({aten::to(a.values, dtype), values}), a.sizes, false});
  return in_layout_of(op, self, sum);
}

Tensor add_sparse(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return sum_of("add", self, other, alpha);
}
Tensor sub_sparse(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return sum_of("sub", self, other, -alpha);
}

// self += alpha * other. A strided tensor is written where `other` has entries.
Tensor add_in_place(const char* op, const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check<ErrorKind::Runtime>(is_sparse(other), OpName(op),
                            "expected a sparse tensor to add to a sparse one, got a strided one");
  if (!self.is_strided() || !self.is_contiguous() || !is_coo(other)) {
    const Tensor sum = sum_of(op, self, other, alpha);
    if (self.is_strided()) return aten::copy_(self, sum);
    write_layout_tensor(op, self, sum);
    return self;
  }
  const Coo b = coo_of(op, other);
  check<ErrorKind::Runtime>(self.sizes() == other.sizes(), OpName(op),
                            "expected the same shape, got ", self.sizes(), " and ", other.sizes());
  check<ErrorKind::Runtime>(can_cast(other.dtype(), self.dtype()), OpName(op),
                            "expected a result that casts to ", self.dtype(), ", got ",
                            other.dtype());
  add_at(self, b.indices, aten::to(b.values, self.dtype()), alpha);
  return self;
}
Tensor add_sparse_(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return add_in_place("add_", self, other, alpha);
}
Tensor sub_sparse_(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return add_in_place("sub_", self, other, -alpha);
}

[[maybe_unused]] const Registration registered = [] {
  register_layer<aten::ops::add__Tensor>(Layer::Layout, &add_sparse_);
  register_layer<aten::ops::sub__Tensor>(Layer::Layout, &sub_sparse_);
  for (const Layout layout : kLayouts) {
    set_layout_rule(layout, &by_entry);
    register_layout_kernel<aten::ops::add_Tensor>(layout, &add_sparse);
    register_layout_kernel<aten::ops::sub_Tensor>(layout, &sub_sparse);
  }
  return Registration();
}();

}  // namespace
}  // namespace treadle::sparse
