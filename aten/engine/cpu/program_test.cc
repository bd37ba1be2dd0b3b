// Programs of many steps against the same steps one by one, over operands of any strides and
// dtypes.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/cpu/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <type_traits>

#include "aten/engine/promotion.h"
#include "core/base/geometry.h"
#include "core/tensor/tensor.h"

namespace treadle::simd {
namespace {

// ---- blocks ----

template <class T, class R, class F>
void each(void* out, const void* const* in, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i)
    static_cast<R*>(out)[i] = f(static_cast<const T*>(in[0])[i], static_cast<const T*>(in[1])[i]);
}
// Integers wrap.
template <class T>
using Wrapping =
    std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

template <class T>
void add(void* out, const void* const* in, const Scalar*, int64_t n, Pass) {
  using W = Wrapping<T>;
  each<T, T>(out, in, n,
             [](T a, T b) { return static_cast<T>(static_cast<W>(a) + static_cast<W>(b)); });
}
template <class T>
void multiply(void* out, const void* const* in, const Scalar*, int64_t n, Pass) {
  using W = Wrapping<T>;
  each<T, T>(out, in, n,
             [](T a, T b) { return static_cast<T>(static_cast<W>(a) * static_cast<W>(b)); });
}
template <class T>
void less(void* out, const void* const* in, const Scalar*, int64_t n, Pass) {
  each<T, bool>(out, in, n, [](T a, T b) { return a < b; });
}
template <class T>
void shift(void* out, const void* const* in, const Scalar* by, int64_t n, Pass) {
  const T amount = by[0].to<T>();
  for (int64_t i = 0; i < n; ++i)
    static_cast<T*>(out)[i] = static_cast<const T*>(in[0])[i] + amount;
}

// Two operators in one loop.
template <class T>
void add_and_less(void* const* out, const void* const* in, const Scalar*, int64_t n, Pass) {
  using W = Wrapping<T>;
  const auto *const a = static_cast<const T*>(in[0]), *const b = static_cast<const T*>(in[1]);
  for (int64_t i = 0; i < n; ++i) {
    const T x = a[i], y = b[i];  // a result may take their place
    static_cast<T*>(out[0])[i] = static_cast<T>(static_cast<W>(x) + static_cast<W>(y));
    static_cast<bool*>(out[1])[i] = x < y;
  }
}

constexpr ScalarType kDtypes[] = {ScalarType::Float32, ScalarType::Float16, ScalarType::BFloat16,
                                  ScalarType::Float64, ScalarType::Int32,   ScalarType::Bool};

template <class T>
PointwiseBlock* block_of(int kind) {
  PointwiseBlock* const blocks[] = {&add<T>, &multiply<T>, &less<T>, &shift<T>};
  return blocks[kind];
}

const Scalar kAmount(3);

// ---- random operands and programs ----

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }

 private:
  std::mt19937 engine_;
};

// A tensor of small numbers, as an operand.
struct Memory {
  Tensor numbers;
  DimVector strides;

  PointwiseOperand operand() const {
    return {static_cast<char*>(numbers.data()), strides.data(), numbers.dtype()};
  }
};

// Elements of `shape`, with gaps, in another order, or the same along a dimension.
Memory any_memory(Random& random, IntList shape, ScalarType dtype) {
  DimVector order(shape.size()), strides(shape.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
  for (size_t d = order.size(); d-- > 1;)
    std::swap(order[d], order[static_cast<size_t>(random.below(static_cast<int>(d) + 1))]);
  if (random.below(2)) std::sort(order.begin(), order.end());
  const bool broadcasts = random.below(3) == 0;
  int64_t elements = random.below(4) == 0 ? 2 : 1;
  for (size_t k = order.size(); k-- > 0;) {
    const auto d = static_cast<size_t>(order[k]);
    strides[d] = broadcasts && random.below(2) ? 0 : elements * item_size(dtype);
    if (strides[d]) elements *= shape[d];
  }
  const Tensor numbers = empty_cpu({elements}, dtype);
  for (int64_t i = 0; i < elements; ++i) {
    const auto number = static_cast<float>(random.below(7) - 3);
    visit_type(TypeList<float, Half, BFloat16, double, int32_t, bool>(), dtype,
               [&]<class T>() { numbers.data_as<T>()[i] = static_cast<T>(number); });
  }
  return {numbers, strides};
}

Memory dense_memory(IntList shape, ScalarType dtype) {
  DimVector strides = contiguous_strides(shape);
  for (int64_t& stride : strides) stride *= item_size(dtype);
  return {empty_cpu({product(shape)}, dtype), strides};
}

template <class T>
void set_loop(ProgramStep& step, int kind) {
  if (kind == 4)
    step.fused = &add_and_less<T>;
  else
    step.block = block_of<T>(kind);
}

ProgramStep any_step(Random& random, int values) {
  const int kind = random.below(5);
  const ScalarType dtype = kDtypes[random.below(5)];
  const StepResult number{compute_of(dtype), dtype}, truth{ScalarType::Bool, ScalarType::Bool};
  ProgramStep step{};
  step.compute = compute_of(dtype);
  if (step.compute == ScalarType::Float32)
    set_loop<float>(step, kind);
  else if (step.compute == ScalarType::Float64)
    set_loop<double>(step, kind);
  else
    set_loop<int32_t>(step, kind);
  step.results[0] = kind == 2 ? truth : number;
  step.results[1] = truth;
  step.result_count = kind == 4 ? 2 : 1;
  step.input_count = kind == 3 ? 1 : 2;
  for (int k = 0; k < step.input_count; ++k)
    step.inputs[static_cast<size_t>(k)] = random.below(values);
  step.scalars = &kAmount;
  return step;
}

std::vector<char> bytes(const Memory& memory) {
  const char* const first = static_cast<const char*>(memory.numbers.data());
  return {first, first + memory.numbers.nbytes()};
}

// Each value of the program by a program of one step.
std::vector<Memory> step_by_step(const Program& program, const std::vector<Memory>& read,
                                 IntList shape) {
  std::vector<Memory> values = read;
  values.reserve(static_cast<size_t>(program.values()));  // operands point to their strides
  for (const ProgramStep& step : program.steps()) {
    Program alone;
    ProgramStep own = step;
    std::vector<PointwiseOperand> operands;
    for (int k = 0; k < step.input_count; ++k) {
      const auto& value = values[static_cast<size_t>(step.inputs[static_cast<size_t>(k)])];
      own.inputs[static_cast<size_t>(k)] = alone.read(value.numbers.dtype());
      operands.push_back(value.operand());
    }
    const int first = alone.add(own);
    for (int r = 0; r < step.result_count; ++r) {
      values.push_back(dense_memory(shape, step.results[static_cast<size_t>(r)].dtype));
      operands.push_back(values.back().operand());
      alone.write(first + r);
    }
    run_program(alone, {operands.data(), operands.size()}, shape);
  }
  return values;
}

void check_program(unsigned seed, IntList shape) {
  Random random(seed);
  Program program;
  std::vector<Memory> read;
  for (int k = 1 + random.below(4); k > 0; --k) {
    read.push_back(any_memory(random, shape, kDtypes[random.below(6)]));
    program.read(read.back().numbers.dtype());
  }
  for (int steps = random.below(12); steps > 0; --steps)
    program.add(any_step(random, program.values()));
  std::vector<Memory> written;
  written.reserve(3);  // operands point to their strides
  std::vector<PointwiseOperand> operands;
  for (const Memory& memory : read) operands.push_back(memory.operand());
  for (int k = 1 + random.below(3); k > 0; --k) {
    const int value = k == 1 ? program.values() - 1 : random.below(program.values());
    program.write(value);
    written.push_back(dense_memory(shape, program.dtype(value)));
    operands.push_back(written.back().operand());
  }
  run_program(program, {operands.data(), operands.size()}, shape);
  const std::vector<Memory> values = step_by_step(program, read, shape);
  for (size_t k = 0; k < written.size(); ++k) {
    const int value = program.writes()[k];
    Memory expected = values[static_cast<size_t>(value)];
    if (value < program.reads()) {  // in the order of the result
      Program copy;
      expected = dense_memory(shape, program.dtype(value));
      copy.write(copy.read(program.dtype(value)));
      const PointwiseOperand both[] = {read[static_cast<size_t>(value)].operand(),
                                       expected.operand()};
      run_program(copy, {both, 2}, shape);
    }
    ASSERT_EQ(bytes(written[k]), bytes(expected)) << "seed " << seed << ", value " << value;
  }
}

TEST(Program, HasTheBitsOfItsSteps) {
  const std::vector<DimVector> shapes = {{1}, {7}, {5, 7}, {3, 100}, {2, 3, 33}, {5000}, {40, 90}};
  for (unsigned seed = 0; seed < 3000; ++seed)
    check_program(seed, IntList(shapes[seed % shapes.size()]));
}

TEST(Program, ManyElementsInParallel) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    check_program(seed, IntList{200'000});
    check_program(seed, IntList{300, 700});
  }
  check_program(0, IntList{3'000'000});  // written past the caches
}

TEST(Program, CopiesWhatItReads) {
  const float numbers[] = {1, 2, 3, 4, 5, 6};
  float result[6] = {};
  const int64_t across[] = {4, 8}, rows[] = {12, 4};
  Program copy;
  copy.write(copy.read(ScalarType::Float32));
  const PointwiseOperand both[] = {
      {reinterpret_cast<char*>(const_cast<float*>(numbers)), across, ScalarType::Float32},
      {reinterpret_cast<char*>(result), rows, ScalarType::Float32}};
  run_program(copy, {both, 2}, IntList{2, 3});
  const float expected[] = {1, 3, 5, 2, 4, 6};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(result[i], expected[i]);
}

}  // namespace
}  // namespace treadle::simd
