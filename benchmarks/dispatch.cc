// The cost of a call in C++: a hop through the dispatcher (an operator that does nothing), and
// `add` of one element.
//
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include "aten/ops/add.h"
#include "aten/ops/mul.h"
#include "aten/ops/ones.h"
#include "core/dispatch/operator.h"

namespace treadle {
namespace {

// An operator as the generator writes it, whose base returns at once.
struct nothing {
  using Signature = int64_t(const Tensor& self, int64_t n);
  static Operator op;
  [[gnu::noinline]] static int64_t base(const Tensor&, int64_t n) { return n; }
  static int64_t layered(LayerMask active, const Tensor& self, int64_t n) {
    return LayerCall<Signature>::call(op, active, self, n);
  }
};
constexpr int kLine = 0;
constexpr EntryInfo kEntry = {.op = &nothing::op,
                              .kind = OperatorKind::Composite,
                              .data_free = true,
                              .file = __FILE__,
                              .line_place = &kLine};
constexpr OperatorInfo kInfo = {.name = "benchmark::nothing",
                                .base_name = "nothing",
                                .schema = "nothing(Tensor self, int n) -> int",
                                .entry = &kEntry,
                                .form = Form::Functional};
int64_t call_nothing(const Tensor& self, int64_t n) { return dispatch<nothing>(self, n); }
KernelTable table;
constinit Operator nothing::op(&kInfo, &table, &boxed_entry<nothing::Signature, &call_nothing>, 0);

void hop(benchmark::State& state) {
  const Tensor t = aten::ones({1});
  for (auto _ : state) benchmark::DoNotOptimize(dispatch<nothing>(t, 1));
}
BENCHMARK(hop);

void add_one_element(benchmark::State& state) {
  const Tensor a = aten::ones({1}), b = aten::ones({1});
  for (auto _ : state) benchmark::DoNotOptimize(aten::add(a, b));
}
BENCHMARK(add_one_element);

void add_number(benchmark::State& state) {
  const Tensor a = aten::ones({1});
  for (auto _ : state) benchmark::DoNotOptimize(aten::add(a, Scalar(1.0)));
}
BENCHMARK(add_number);

void add_in_place(benchmark::State& state) {
  const Tensor a = aten::ones({1}), b = aten::ones({1});
  for (auto _ : state) benchmark::DoNotOptimize(aten::add_(a, b));
}
BENCHMARK(add_in_place);

}  // namespace
}  // namespace treadle
