// Geometry of views: the memory that they share, and the arguments that they refuse.
//
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <numeric>

#include "aten/ops/arange.h"
#include "aten/ops/as_strided.h"
#include "aten/ops/as_strided_backward.h"
#include "aten/ops/chunk.h"
#include "aten/ops/clone.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/diagonal.h"
#include "aten/ops/empty.h"
#include "aten/ops/expand.h"
#include "aten/ops/flatten.h"
#include "aten/ops/item.h"
#include "aten/ops/movedim.h"
#include "aten/ops/narrow.h"
#include "aten/ops/permute.h"
#include "aten/ops/reshape.h"
#include "aten/ops/resize_.h"
#include "aten/ops/select.h"
#include "aten/ops/set_.h"
#include "aten/ops/slice.h"
#include "aten/ops/split.h"
#include "aten/ops/split_with_sizes.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/tensor_split.h"
#include "aten/ops/transpose.h"
#include "aten/ops/transpose_.h"
#include "aten/ops/unbind.h"
#include "aten/ops/unflatten.h"
#include "aten/ops/unfold.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/view.h"
#include "aten/ops/view_as_complex.h"
#include "aten/ops/view_as_real.h"

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

// 0, 1, 2, ... in a shape.
Tensor counting(IntList sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return aten::view(aten::arange(Scalar(n)), sizes);
}

std::vector<int64_t> values(const Tensor& t) {
  const Tensor c = aten::contiguous(t);
  const auto* data = c.data_as<int64_t>();
  return std::vector<int64_t>(data, data + c.numel());
}
using Values = std::vector<int64_t>;

TEST(Views, ShareMemoryAndVersion) {
  const Tensor t = counting({2, 3});
  for (const Tensor& v : {aten::transpose(t, 0, 1), aten::view(t, {6}), aten::select(t, 0, 1),
                          aten::slice(t, 1, 1), aten::unsqueeze(t, 0), aten::expand(t, {4, 2, 3}),
                          aten::permute(t, {1, 0}), aten::diagonal(t)}) {
    EXPECT_EQ(v.storage(), t.storage());
    v.impl()->bump_version();
  }
  EXPECT_EQ(t.version(), 8u);
}

TEST(Views, ReadTheRightElements) {
  const Tensor t = counting({2, 3, 4});
  EXPECT_EQ(values(aten::select(t, -1, -1)), (Values{3, 7, 11, 15, 19, 23}));
  EXPECT_EQ(values(aten::slice(t, 2, 1, INT64_MAX, 2)),
            (Values{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23}));
  EXPECT_EQ(values(aten::slice(t, 2, INT64_MIN, 1)), (Values{0, 4, 8, 12, 16, 20}));
  EXPECT_EQ(values(aten::slice(t, 0, 1, 1)), Values{});
  EXPECT_EQ(values(aten::slice(t, 1, 2, 3, INT64_MAX)), (Values{8, 9, 10, 11, 20, 21, 22, 23}));
  EXPECT_EQ(values(aten::diagonal(aten::select(t, 0, 0), 1)), (Values{1, 6, 11}));
  EXPECT_EQ(values(aten::diagonal(aten::select(t, 0, 0), INT64_MIN)), Values{});
  EXPECT_EQ(values(aten::diagonal(aten::select(t, 0, 0), INT64_MAX)), Values{});
  EXPECT_EQ(values(aten::unfold(aten::arange(Scalar(5)), 0, 3, 2)), (Values{0, 1, 2, 2, 3, 4}));
  EXPECT_EQ(aten::movedim(t, 0, -1).sizes(), IntList({3, 4, 2}));
  EXPECT_EQ(aten::movedim(t, {0, 1}, {2, 0}).sizes(), IntList({3, 4, 2}));
  EXPECT_EQ(aten::squeeze(aten::unsqueeze(t, -1)).sizes(), t.sizes());
  EXPECT_EQ(aten::flatten(t, 1).sizes(), IntList({2, 12}));
  EXPECT_EQ(aten::unflatten(t, 2, {2, -1}).sizes(), IntList({2, 3, 2, 2}));
  EXPECT_EQ(values(aten::as_strided(t, {2, 2}, {0, 5}, 1)), (Values{1, 6, 1, 6}));
}

TEST(Views, ReshapeCopiesOnlyWhereItMust) {
  const Tensor t = counting({2, 3, 4});
  const Tensor swapped = aten::transpose(t, 0, 1);  // (3, 2, 4), strides (4, 12, 1)
  EXPECT_EQ(aten::reshape(swapped, {3, 2, 2, 2}).storage(), t.storage());
  EXPECT_FALSE(aten::reshape(swapped, {6, 4}).storage() == t.storage());
  EXPECT_EQ(values(aten::reshape(swapped, {6, 4})), values(swapped));
  EXPECT_NE(error_of([&] { aten::view(swapped, {6, 4}); }).find("use reshape"), std::string::npos);
  EXPECT_EQ(aten::view(aten::expand(counting({3, 1}), {3, 4}), {3, 2, 2}).strides(),
            IntList({1, 0, 0}));
  EXPECT_EQ(aten::reshape(counting({0, 3}), {3, 0, 7}).numel(), 0);
  EXPECT_EQ(aten::reshape(counting({}), {1, 1}).numel(), 1);
}

TEST(Views, RefuseWhatDoesNotFit) {
  const Tensor t = counting({2, 3});
  EXPECT_EQ(error_of([&] { aten::select(t, 0, 2); }),
            "select: expected index in [-2, 2) for dimension 0, got index = 2");
  EXPECT_EQ(error_of([&] {
              aten::reshape(t, {4, -1});
            }),
            "reshape: expected a shape of 6 elements, got shape = (4, -1)");
  EXPECT_EQ(error_of([&] {
              aten::reshape(t, {-1, -1});
            }),
            "reshape: expected at most one size of -1, got shape = (-1, -1)");
  EXPECT_NE(error_of([&] {
              aten::reshape(counting({0}), {0, -1});
            }).find("is decided"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              aten::reshape(t, {int64_t{1} << 32, int64_t{1} << 32, 6});
            }),
            "no error");
  EXPECT_EQ(error_of([&] {
              aten::expand(t, {4, 3});
            }),
            "expand: expected sizes that (2, 3) broadcasts to, got size = (4, 3)");
  EXPECT_NE(error_of([&] { aten::expand(t, {INT64_MAX, 2, 3}); }), "no error");
  EXPECT_NE(error_of([&] { aten::permute(t, {0, 0}); }), "no error");
  EXPECT_NE(error_of([&] { aten::permute(t, {0}); }), "no error");
  EXPECT_NE(error_of([&] { aten::slice(t, 0, 0, 2, 0); }).find("slice: expected step != 0"),
            std::string::npos);
  EXPECT_NE(
      error_of([&] { aten::as_strided(t, {7}, {1}); }).find("inside its storage of 6 elements"),
      std::string::npos);
  EXPECT_NE(error_of([&] { aten::as_strided(t, {2}, {1}, -1); }), "no error");
  EXPECT_NE(error_of([&] { aten::as_strided(t, {2}, {INT64_MAX}, INT64_MAX); }), "no error");
  EXPECT_NE(error_of([&] { aten::narrow(t, 1, 2, 2); }), "no error");
  EXPECT_NE(error_of([&] { aten::narrow(t, 1, 1, INT64_MAX); }), "no error");
  EXPECT_NE(error_of([&] { aten::unfold(t, 1, 4, 1); }), "no error");
  EXPECT_NE(error_of([&] { aten::diagonal(t, 0, 1, -1); }), "no error");
  EXPECT_NE(error_of([&] { aten::item(t); }), "no error");
  EXPECT_NE(error_of([&] { aten::view_as_complex(t); }), "no error");
}

TEST(Views, SplitsAddUpToTheWhole) {
  const Tensor t = counting({7, 2});
  const auto sizes_of = [](const std::vector<Tensor>& pieces) {
    Values sizes;
    for (const Tensor& p : pieces) sizes.push_back(p.size(0));
    return sizes;
  };
  EXPECT_EQ(sizes_of(aten::split(t, 3)), (Values{3, 3, 1}));
  EXPECT_EQ(sizes_of(aten::split_with_sizes(t, {1, 0, 6})), (Values{1, 0, 6}));
  EXPECT_EQ(sizes_of(aten::chunk(t, 4)), (Values{2, 2, 2, 1}));
  EXPECT_EQ(sizes_of(aten::chunk(t, 100)), Values(7, 1));
  EXPECT_EQ(sizes_of(aten::tensor_split(t, 3)), (Values{3, 2, 2}));
  EXPECT_EQ(sizes_of(aten::tensor_split(t, {2, 5, 5})), (Values{2, 3, 0, 2}));
  EXPECT_EQ(aten::unbind(t, 1).size(), 2u);
  EXPECT_NE(error_of([&] { aten::split(t, 0); }), "no error");
  EXPECT_NE(error_of([&] { aten::split_with_sizes(t, {3, 3}); }), "no error");
  EXPECT_NE(error_of([&] { aten::split_with_sizes(t, {INT64_MAX, INT64_MAX, 9}); }), "no error");
  EXPECT_NE(error_of([&] { aten::chunk(t, 0); }), "no error");
}

TEST(Views, SeeComplexNumbersAsPairs) {
  const Tensor pairs = aten::empty({3, 2}, ScalarType::Float32);
  std::iota(pairs.data_as<float>(), pairs.data_as<float>() + 6, 0.0f);
  const Tensor z = aten::view_as_complex(pairs);
  EXPECT_EQ(z.dtype(), ScalarType::Complex64);
  EXPECT_EQ(z.data_as<std::complex<float>>()[2], std::complex<float>(4, 5));
  EXPECT_EQ(aten::view_as_real(aten::slice(z, 0, 1)).storage_offset(), 2);
  EXPECT_EQ(aten::view(pairs, ScalarType::Float64).sizes(), IntList({3, 1}));
  EXPECT_EQ(aten::view(pairs, ScalarType::UInt8).sizes(), IntList({3, 8}));
  EXPECT_NE(error_of([&] { aten::view(aten::slice(pairs, 1, 1), ScalarType::Float64); }),
            "no error");
}

TEST(Views, WorkWithoutValues) {
  const Tensor t = aten::empty({2, 3}, ScalarType::Float32, std::nullopt, kMeta);
  EXPECT_TRUE(aten::transpose(t, 0, 1).is_meta());
  EXPECT_EQ(aten::reshape(aten::transpose(t, 0, 1), {6}).sizes(), IntList({6}));
  EXPECT_EQ(aten::clone(t).sizes(), t.sizes());
}

TEST(Views, ChangeInPlaceOnRequest) {
  const Tensor t = counting({2, 3});
  aten::transpose_(t, 0, 1);
  EXPECT_EQ(values(t), (Values{0, 3, 1, 4, 2, 5}));
  aten::resize_(t, {4, 4});
  EXPECT_EQ(t.numel(), 16);
  EXPECT_EQ(t.storage()->nbytes(), 128u);
  EXPECT_NE(error_of([&] { aten::resize_(t, {-1}); }), "no error");
  EXPECT_NE(error_of([&] { aten::resize_(t, {int64_t{1} << 60, 8}); }), "no error");
  EXPECT_EQ(t.numel(), 16);
  aten::set_(t, counting({3}));
  EXPECT_EQ(values(t), (Values{0, 1, 2}));
}

TEST(Views, GradientOfOverlappingGeometryAddsUpAndShares) {
  const Tensor grad = aten::empty({2, 2}, ScalarType::Float64);
  std::iota(grad.data_as<double>(), grad.data_as<double>() + 4, 1.0);
  // The view reads positions 0 1 and 1 2 of an input of 4 elements.
  const Tensor in = aten::as_strided_backward(grad, {4}, {1}, {2, 2}, {1, 1}, 0);
  EXPECT_EQ(std::vector<double>(in.data_as<double>(), in.data_as<double>() + 4),
            (std::vector<double>{1, 5, 4, 0}));
  // An input that has one position four times shares its gradient.
  const Tensor shared =
      aten::contiguous(aten::as_strided_backward(grad, {4}, {0}, {2, 2}, {0, 0}, 0));
  EXPECT_EQ(std::vector<double>(shared.data_as<double>(), shared.data_as<double>() + 4),
            std::vector<double>(4, 2.5));
  EXPECT_NE(error_of([&] {
              aten::as_strided_backward(grad, {4}, {INT64_MAX}, {2, 2}, {1, 1}, 0);
            }),
            "no error");
}

}  // namespace
}  // namespace treadle
