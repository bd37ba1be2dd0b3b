// Kernels that read or write whole slices at the entries of index tensors: index, index_put,
// index_select, index_add, ...
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/element_bits.h"
#include "aten/backend/cpu/long_sums.h"
#include "aten/backend/cpu/wrapping.h"
#include "aten/ops/_index_integer.h"
#include "aten/ops/_index_put_integer.h"
#include "aten/ops/expand.h"
#include "aten/ops/index_add.h"
#include "aten/ops/index_copy.h"
#include "aten/ops/index_fill.h"
#include "aten/ops/index_select.h"
#include "aten/ops/indexing/cpu/factor.h"
#include "aten/ops/indexing/cpu/index_plan.h"
#include "aten/ops/indexing/index_geometry.h"

namespace treadle::cpu {
namespace {

template <class Element>
void read(const IndexPlan& plan, const Tensor& from, const Tensor& out) {
  if (out.numel() > 0)
    read_plan(plan, static_cast<const Element*>(from.data()), static_cast<Element*>(out.data()));
}

template <class Element>
void assign(const IndexPlan& plan, const Tensor& out, const void* source, bool many) {
  write_plan(plan, static_cast<Element*>(out.data()), out.numel(),
             static_cast<const Element*>(source), many, Assign());
}

template <class T>
void index_integer_cpu(const Tensor& self, TensorList indices, const Tensor& out) {
  read<bits_of<T>>(advanced_plan("index", self, indices, PlanFor::Reading, out), self, out);
}

// Adds term(source element) to the elements of the plan; `terms` of them, or more.
template <class T, class Term>
void add_plan(const IndexPlan& plan, const Tensor& out, const Tensor& source, bool many,
              int64_t terms, Term term) {
  const auto add = [&]<class To>(To* to) {
    write_plan(plan, to, out.numel(), source.data_as<T>(), many, [=](To& target, const T& value) {
      target = sum_of(target, static_cast<To>(term(element_value(value))));
    });
  };
  if (worth_wide_sums<T>(terms, out.numel()))
    with_wide_sums(out.data_as<T>(), out.numel(), add);
  else
    add(out.data_as<T>());
}

// `values` with one for each entry of the indices, or but one for all.
Tensor spread(const Tensor& values, const Tensor& out, TensorList indices) {
  if (values.numel() == 1 || (out.dim() == 1 && values.sizes() == indices[0].sizes()))
    return values;
  return aten::expand(values, shape::index_geometry("index_put", out, indices).result);
}

template <class T>
void index_put_integer_cpu(const Tensor& /*self*/, TensorList indices, const Tensor& values,
                           bool accumulate, const Tensor& out) {
  const IndexPlan plan = advanced_plan("index_put", out, indices, PlanFor::Writing, out);
  const bool many = values.numel() != 1;
  const Tensor source = apart_from(spread(values, out, indices), out);
  if (!accumulate) return assign<bits_of<T>>(plan, out, source.data(), many);
  // The number of targets, however many values there are for them.
  int64_t terms = 1;
  for (const Tensor& index : indices)
    if (index.defined()) terms = std::max(terms, index.numel());
  add_plan<T>(plan, out, source, many, terms, [](auto value) { return value; });
}

template <class T>
void index_select_cpu(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  read<bits_of<T>>(
      dim_plan("index_select", self, dim, index, NegativeIndex::Refused, PlanFor::Reading, out),
      self, out);
}

template <class T>
void index_add_cpu(const Tensor& /*self*/, int64_t dim, const Tensor& index, const Tensor& source,
                   const Scalar& alpha, const Tensor& out) {
  const T factor = factor_as<T>("index_add", "alpha", alpha);
  const IndexPlan plan =
      dim_plan("index_add", out, dim, index, NegativeIndex::Refused, PlanFor::Writing, out);
  const Tensor from = apart_from(source, out);
  add_plan<T>(plan, out, from, true, from.numel(),
              [=](T value) { return product_of(factor, value); });
}

template <class T>
void index_copy_cpu(const Tensor& /*self*/, int64_t dim, const Tensor& index, const Tensor& source,
                    const Tensor& out) {
  const IndexPlan plan =
      dim_plan("index_copy", out, dim, index, NegativeIndex::Refused, PlanFor::Writing, out);
  assign<bits_of<T>>(plan, out, apart_from(source, out).data(), true);
}

template <class T>
void index_fill_cpu(const Tensor& /*self*/, int64_t dim, const Tensor& index, const Scalar& value,
                    const Tensor& out) {
  const T filler = value.checked_to<T>("index_fill");
  const IndexPlan plan =
      dim_plan("index_fill", out, dim, index, NegativeIndex::FromTheEnd, PlanFor::Writing, out);
  assign<bits_of<T>>(plan, out, &filler, false);
}

const auto index_registered = register_kernels<aten::ops::_index_integer, DeviceType::CPU>(
    []<class T>() { return &index_integer_cpu<T>; }, "index_integer_cpu");
const auto index_put_registered = register_kernels<aten::ops::_index_put_integer, DeviceType::CPU>(
    []<class T>() { return &index_put_integer_cpu<T>; }, "index_put_integer_cpu");
const auto index_select_registered = register_kernels<aten::ops::index_select, DeviceType::CPU>(
    []<class T>() { return &index_select_cpu<T>; }, "index_select_cpu");
const auto index_add_registered = register_kernels<aten::ops::index_add, DeviceType::CPU>(
    []<class T>() { return &index_add_cpu<T>; }, "index_add_cpu");
const auto index_copy_registered = register_kernels<aten::ops::index_copy, DeviceType::CPU>(
    []<class T>() { return &index_copy_cpu<T>; }, "index_copy_cpu");
const auto index_fill_registered =
    register_kernels<aten::ops::index_fill_int_Scalar, DeviceType::CPU>(
        []<class T>() { return &index_fill_cpu<T>; }, "index_fill_cpu");

}  // namespace
}  // namespace treadle::cpu
