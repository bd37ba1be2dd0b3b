// An interpreter of generated kernels over memory that the CPU sees. With it a backend runs nearly
// every pointwise operator and reduction before it has a kernel of its own.
//
//   bool pointwise(const treadle_pointwise_call& call) override { return evaluate(call); }
//   bool reduce(const treadle_reduce_call& call) override { return evaluate(call); }
//
// A tree becomes a list of steps over blocks of 256 elements, so the cost of decoding a node is
// shared by a block. Functions that the interpreter does not know (the rarer special functions) are
// declined. Treadle then computes the call on the CPU.
#pragma once

#include <memory>

#include "treadle/plugin/elements.hpp"
#include "treadle/plugin/functions.hpp"
#include "treadle/plugin/value.hpp"

#pragma GCC visibility push(hidden)

namespace treadle::plugin {

namespace detail {

inline constexpr int64_t kBlock = 256;  // elements evaluated at once

template <class T>
struct NamedNumber {
  const char* name;
  T value;
};

// An expression as steps over blocks. One program serves several threads, each with its own Frame.
template <class T>
class Program {
 public:
  // A block for each input, then one for each node.
  using Frame = std::vector<T>;

  // `inputs` are the names of the block's inputs, `numbers` the other names. False: a function is
  // unknown.
  bool compile(const treadle_expression& expression, DType dtype,
               const std::vector<const char*>& inputs, const std::vector<NamedNumber<T>>& numbers) {
    const Functions<T>& functions = functions_of<T>();
    inputs_ = inputs.size();
    dtype_ = dtype;
    for (size_t i = 0; i < expression.count; ++i) {
      const treadle_node& node = expression.nodes[i];
      Step step;
      step.place = inputs_ + i;
      for (int32_t c = 0; c < node.child_count; ++c)
        step.arguments[c] = steps_[static_cast<size_t>(node.children[c])].place;
      switch (node.kind) {
        case TREADLE_NODE_NAME:
          if (!name(node.text, inputs, numbers, step)) return false;
          break;
        case TREADLE_NODE_INT:
        case TREADLE_NODE_BOOL:
          step.constant = convert<T>(node.integer);
          break;
        case TREADLE_NODE_FLOAT:
          step.constant = convert<T>(node.number);
          break;
        default:
          step.function = functions.find(function_name(node, dtype), node.child_count);
          if (step.function == nullptr) return false;
      }
      steps_.push_back(step);
    }
    return !steps_.empty();
  }

  Frame frame() const {
    Frame frame((inputs_ + steps_.size()) * kBlock);
    for (const Step& step : steps_)
      if (step.function == nullptr && step.place >= inputs_)
        std::fill_n(frame.begin() + static_cast<int64_t>(step.place) * kBlock, kBlock,
                    step.constant);
    return frame;
  }
  // The block of an input, which the caller fills.
  T* input(Frame& frame, size_t i) const { return frame.data() + i * kBlock; }
  // Evaluates n elements; the result is in the frame.
  const T* run(Frame& frame, int64_t n) const {
    for (const Step& step : steps_) {
      if (step.function == nullptr) continue;
      const T* arguments[TREADLE_MAX_CHILDREN];
      for (int32_t c = 0; c < step.function->arity; ++c)
        arguments[c] = frame.data() + step.arguments[c] * kBlock;
      T* const out = frame.data() + step.place * kBlock;
      step.function->run(arguments, out, n);
      if constexpr (std::is_integral_v<T>)
        wrap_elements(dtype_, reinterpret_cast<uint64_t*>(out), n);
    }
    return frame.data() + steps_.back().place * kBlock;
  }

 private:
  struct Step {
    const Function<T>* function = nullptr;  // null: an input or a constant
    size_t place = 0;                       // of its block
    size_t arguments[TREADLE_MAX_CHILDREN] = {};
    T constant{};
  };

  static const char* function_name(const treadle_node& node, DType dtype) {
    if (node.kind == TREADLE_NODE_SELECT) return "where";
    if (dtype == DType::Bool && std::strcmp(node.text, "bitwise_not") == 0) return "!";
    return node.text;
  }
  static bool name(const char* text, const std::vector<const char*>& inputs,
                   const std::vector<NamedNumber<T>>& numbers, Step& step) {
    const auto is = [text](const char* other) { return std::strcmp(text, other) == 0; };
    for (size_t k = 0; k < inputs.size(); ++k)
      if (is(inputs[k])) return (step.place = k, true);
    for (const NamedNumber<T>& number : numbers)
      if (is(number.name)) return (step.constant = number.value, true);
    using Limits = std::numeric_limits<double>;
    if (is("pi")) return (step.constant = convert<T>(3.14159265358979323846), true);
    if (is("inf")) return (step.constant = convert<T>(Limits::infinity()), true);
    if (is("nan")) return (step.constant = convert<T>(Limits::quiet_NaN()), true);
    return false;
  }

  size_t inputs_ = 0;
  DType dtype_ = DType::Bool;
  std::vector<Step> steps_;
};

// Calls f(Type<T>{}) for the T in which numbers of a dtype are computed.
template <class F>
bool with_computed(DType dtype, F&& f) {
  if (dtype == DType::Complex64) return f(Type<std::complex<float>>{});
  if (dtype == DType::Complex128) return f(Type<std::complex<double>>{});
  if (dtype == DType::Float64) return f(Type<double>{});
  if (is_floating(dtype)) return f(Type<float>{});
  if (is_signed_integer(dtype)) return f(Type<int64_t>{});
  return f(Type<uint64_t>{});
}

// Elements where reading converts to bool: whether the element differs from 0.
template <class T>
void load_computed(const char* from, int64_t stride, DType dtype, DType compute, T* to, int64_t n) {
  if (compute == DType::Bool && dtype != DType::Bool) {
    bool truth[kBlock];
    load_elements(from, stride, dtype, truth, n);
    std::copy_n(truth, n, to);
  } else {
    load_elements(from, stride, dtype, to, n);
  }
}

template <class T>
bool evaluate_pointwise(const treadle_pointwise_call& call) {
  const auto compute = static_cast<DType>(call.compute);
  std::vector<const char*> inputs;
  for (int32_t k = 0; k < call.input_count; ++k) inputs.push_back(call.inputs[k].name);
  std::vector<NamedNumber<T>> numbers;
  for (int32_t k = 0; k < call.number_count; ++k) {
    const Number number = number_of(call.numbers[k]);
    numbers.push_back({call.number_names[k],
                       compute == DType::Bool ? convert<T>(number.to<bool>()) : number.to<T>()});
  }
  Program<T> program;
  if (!program.compile(call.body, compute, inputs, numbers)) return false;

  const auto all = strides_of(call);
  const Span<const int64_t* const> strides(all.data(), all.size());
  parallel_for(call.numel, kGrain, [&](int64_t begin, int64_t end) {
    auto frame = program.frame();
    Walk in(call.shape, call.dims, strides, begin), out(call.shape, call.dims, strides, begin);
    // f(position in the block, elements) for each piece of a row.
    const auto rows = [](Walk& walk, int64_t n, auto f) {
      for (int64_t done = 0; done < n;) {
        const int64_t count = std::min(n - done, walk.row_left());
        f(done, count);
        done += count;
        walk.advance(count);
      }
    };
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      rows(in, n, [&](int64_t done, int64_t count) {
        for (size_t k = 0; k < inputs.size(); ++k)
          load_computed(address(call.inputs[k]) + in.offset(k + 1), in.row_stride(k + 1),
                        static_cast<DType>(call.inputs[k].dtype), compute,
                        program.input(frame, k) + done, count);
      });
      const T* const result = program.run(frame, n);
      rows(out, n, [&](int64_t done, int64_t count) {
        store_elements(result + done, address(call.out) + out.offset(0), out.row_stride(0),
                       static_cast<DType>(call.out.dtype), count);
      });
    }
  });
  return true;
}

// The four expressions of a reduction.
template <class T>
class Reduction {
 public:
  explicit Reduction(const treadle_reduce_call& call)
      : call_(call), compute_(static_cast<DType>(call.compute)) {}

  bool compile() {
    const auto n = static_cast<double>(call_.folded);
    return (call_.init.count == 0 || init_.compile(call_.init, compute_, {}, {})) &&
           step_.compile(call_.step, compute_, {"acc", "x"}, {}) &&
           combine_.compile(call_.combine, compute_, {"a", "b"}, {}) &&
           (call_.final.count == 0 ||
            final_.compile(call_.final, compute_, {"acc"}, {{"n", convert<T>(n)}}));
  }

  // Each output is folded in up to kBlock contiguous stretches at once, one per lane of a block.
  void run() const {
    const int64_t* const strides[] = {call_.in.strides, call_.out.strides};
    const int64_t grain = std::max<int64_t>(1, kGrain / call_.folded);
    parallel_for(call_.outputs, grain, [&](int64_t begin, int64_t end) {
      Frames frames(*this);
      Walk kept(call_.kept_shape, call_.kept_dims, strides, begin);
      for (int64_t i = begin; i < end; ++i, kept.advance()) {
        const T result = fold(frames, address(call_.in) + kept.offset(0));
        store_elements(&result, address(call_.out) + kept.offset(1), 0,
                       static_cast<DType>(call_.out.dtype), 1);
      }
    });
  }

 private:
  using Frame = typename Program<T>::Frame;
  struct Frames {
    Frame init, step, combine, final;
    explicit Frames(const Reduction& r) : step(r.step_.frame()), combine(r.combine_.frame()) {
      if (r.call_.init.count != 0) init = r.init_.frame();
      if (r.call_.final.count != 0) final = r.final_.frame();
    }
  };

  T fold(Frames& frames, const char* base) const {
    const int64_t lanes = std::clamp<int64_t>(call_.folded / 32, 1, kBlock);
    std::vector<Walk> walks;
    const int64_t* const strides[] = {call_.folded_strides};
    for (int64_t lane = 0; lane < lanes; ++lane)
      walks.emplace_back(call_.folded_shape, call_.folded_dims, strides, start(lane, lanes));
    // The results of stretches of kRun elements are combined in pairs, like a binary counter, so
    // the error of a sum grows with the logarithm of its length.
    constexpr int64_t kRun = 64;
    std::vector<std::vector<T>> levels;
    const int64_t longest = start(1, lanes);
    int64_t runs = 0;
    for (int64_t at = 0; at < longest; at += kRun, ++runs) {
      std::vector<T> acc = run_lanes(frames, base, walks, at, std::min(longest, at + kRun));
      size_t level = 0;
      for (int64_t carry = runs; (carry & 1) != 0; carry >>= 1, ++level) {
        join(frames, levels[level], acc);
        acc = std::move(levels[level]);
      }
      if (levels.size() <= level) levels.resize(level + 1);
      levels[level] = std::move(acc);
    }
    std::vector<T> acc;
    for (size_t level = 0; level < levels.size(); ++level) {
      if (((runs >> level) & 1) == 0) continue;
      if (!acc.empty()) join(frames, levels[level], acc);
      acc = std::move(levels[level]);
    }
    // Neighbours are joined until one lane is left.
    while (acc.size() > 1) {
      std::vector<T> a, b;
      for (size_t i = 0; i + 1 < acc.size(); i += 2) {
        a.push_back(acc[i]);
        b.push_back(acc[i + 1]);
      }
      join(frames, a, b);
      if (acc.size() % 2 == 1) a.push_back(acc.back());
      acc = std::move(a);
    }
    if (call_.final.count == 0) return acc[0];
    *final_.input(frames.final, 0) = acc[0];
    return *final_.run(frames.final, 1);
  }

  // The start of a lane's stretch; the first stretches are the longest.
  int64_t start(int64_t lane, int64_t lanes) const {
    return lane * (call_.folded / lanes) + std::min(lane, call_.folded % lanes);
  }

  // Folds the elements [begin, end) of each lane's stretch. A shorter stretch may have none left;
  // its result must then not be joined. Lanes with an element come first.
  std::vector<T> run_lanes(Frames& frames, const char* base, std::vector<Walk>& walks,
                           int64_t begin, int64_t end) const {
    const auto lanes = static_cast<int64_t>(walks.size());
    const int64_t length = call_.folded / lanes, longer = call_.folded % lanes;
    std::vector<T> acc(walks.size());
    bool fresh = call_.init.count == 0;
    if (!fresh) std::fill(acc.begin(), acc.end(), *init_.run(frames.init, 1));
    for (int64_t at = begin; at < end; ++at) {
      const int64_t n = at < length ? lanes : longer;
      T* const x = step_.input(frames.step, 1);
      for (int64_t lane = 0; lane < n; ++lane) {
        Walk& walk = walks[static_cast<size_t>(lane)];
        load_computed(base + walk.offset(0), 0, static_cast<DType>(call_.in.dtype), compute_,
                      x + lane, 1);
        walk.advance();
      }
      if (fresh) {
        std::copy_n(x, n, acc.begin());
        if (n < lanes) acc.resize(static_cast<size_t>(n));
        fresh = false;
        continue;
      }
      const auto stepped = std::min(n, static_cast<int64_t>(acc.size()));
      std::copy_n(acc.begin(), stepped, step_.input(frames.step, 0));
      std::copy_n(step_.run(frames.step, stepped), stepped, acc.begin());
    }
    return acc;
  }

  // a = combine(a, b), for the lanes of b.
  void join(Frames& frames, std::vector<T>& a, const std::vector<T>& b) const {
    const auto n = static_cast<int64_t>(std::min(a.size(), b.size()));
    std::copy_n(a.begin(), n, combine_.input(frames.combine, 0));
    std::copy_n(b.begin(), n, combine_.input(frames.combine, 1));
    std::copy_n(combine_.run(frames.combine, n), n, a.begin());
  }

  const treadle_reduce_call& call_;
  DType compute_;
  Program<T> init_, step_, combine_, final_;
};

}  // namespace detail

// Runs a pointwise call. False, with nothing written, if a function of its body is unknown.
// Storages must be addresses that the CPU may read and write.
inline bool evaluate(const treadle_pointwise_call& call) {
  return detail::with_computed(static_cast<DType>(call.compute), [&](auto type) {
    return detail::evaluate_pointwise<typename decltype(type)::type>(call);
  });
}
// The same for a reduction.
inline bool evaluate(const treadle_reduce_call& call) {
  return detail::with_computed(static_cast<DType>(call.compute), [&](auto type) {
    detail::Reduction<typename decltype(type)::type> reduction(call);
    if (!reduction.compile()) return false;
    reduction.run();
    return true;
  });
}

}  // namespace treadle::plugin

#pragma GCC visibility pop
