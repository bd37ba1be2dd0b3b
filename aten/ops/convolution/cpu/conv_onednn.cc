// oneDNN plans: a primitive for each task and geometry, made at the first call and cached.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/convolution/cpu/conv_onednn.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "aten/backend/cpu/lru_cache.h"
#include "aten/backend/cpu/onednn.h"
#include "aten/ops/convolution/cpu/onednn_sizes.h"
#include "core/base/error.h"
#include "core/base/fork_safe_mutex.h"
#include "core/tensor/tensor.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

using dnnl::memory;

enum class Task { Forward, ForwardBias, GradInput, GradWeight };

// A primitive with the layouts that it requires and, if those are not the caller's, the reorders
// to and from them. Without a primitive: oneDNN has none for this geometry.
struct Plan {
  dnnl::primitive primitive;
  memory::desc given[3], wanted[3];  // input, weight, output (or their gradients)
  memory::desc bias, scratch;
  dnnl::reorder reorders[3];  // of an operand to the primitive's layout, of the result from it
  bool reordered[3];
  // The reorder of a large weight in pieces that several threads share; empty for a small one.
  struct WeightPiece {
    memory::desc given, wanted;
    dnnl::reorder reorder;
  };
  std::vector<WeightPiece> weight_pieces;
};

// The pieces of a reorder of the weight, by its first dimension. Empty if the weight is small, or
// if oneDNN cannot describe a part of the layout.
std::vector<Plan::WeightPiece> weight_pieces_of(const memory::desc& given,
                                                const memory::desc& wanted) {
  constexpr size_t kLarge = 1 << 20;  // bytes
  constexpr int64_t kPieces = 8, kChannels = 64;
  const memory::dims sizes = given.dims();
  if (wanted.get_size() < kLarge || sizes[0] < 2 * kChannels) return {};
  std::vector<Plan::WeightPiece> pieces;
  const int64_t step = ((sizes[0] + kPieces - 1) / kPieces + kChannels - 1) / kChannels * kChannels;
  try {
    for (int64_t begin = 0; begin < sizes[0]; begin += step) {
      memory::dims size = sizes, offset(sizes.size(), 0);
      size[0] = std::min(step, sizes[0] - begin);
      offset[0] = begin;
      const memory::desc from = given.submemory_desc(size, offset);
      const memory::desc to = wanted.submemory_desc(size, offset);
      pieces.push_back({from, to,
                        dnnl::reorder(dnnl::reorder::primitive_desc(onednn::engine(), from,
                                                                    onednn::engine(), to))});
    }
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory) throw;
    return {};
  }
  return pieces;
}

// The range in which oneDNN's kernels, which compute addresses in 32 bits, are taken at their word.
bool in_range(const ConvGeometry& g) {
  constexpr int64_t kMany = int64_t{1} << 20, kElements = int64_t{1} << 29;
  if (g.batch > kMany || g.in_channels > kMany || g.out_channels > kMany) return false;
  // They add up a window in float, one element after the other; matrix products cut long sums.
  constexpr int64_t kTerms = int64_t{1} << 16;
  if (std::max(g.in_channels, g.out_channels) / g.groups > kTerms / g.kernel_elements())
    return false;
  for (int d = 0; d < 3; ++d) {
    const int64_t span = g.dilation[d] * (g.kernel[d] - 1) + 1,
                  behind = onednn::ConvSizes::padding_behind(g, d);
    for (const int64_t size : {g.in[d], g.out[d], span, g.stride[d]}) {
      if (size > kMany) return false;
    }
    if (g.padding[d] >= span || behind >= span || behind <= -g.stride[d]) return false;
  }
  return g.in_positions() <= kElements && g.out_positions() <= kElements &&
         g.kernel_elements() <= kElements && g.in_image() <= kElements &&
         g.out_image() <= kElements && g.weight_elements() <= kElements;
}

memory::desc any_layout(const memory::dims& sizes, memory::data_type type) {
  return memory::desc(sizes, type, memory::format_tag::any);
}

// With `as_given`, the primitive takes the images in the caller's layout.
std::shared_ptr<const Plan> make_plan(Task task, const ConvGeometry& g, bool as_given) {
  auto plan = std::make_shared<Plan>();
  if (!in_range(g)) return plan;
  const onednn::ConvSizes sizes(g);
  const auto f32 = memory::data_type::f32;
  const auto type = g.is_bfloat16 ? memory::data_type::bf16 : f32;
  const auto of_weight = task == Task::GradWeight ? f32 : type;
  const auto given = [](const memory::dims& dims, memory::data_type t, bool last, size_t channels) {
    return last ? onednn::channels_innermost(dims, channels, t) : onednn::contiguous(dims, t);
  };
  plan->given[0] = given(sizes.in, type, g.channels_last, 1);
  plan->given[1] = given(sizes.weight, of_weight, g.weight_last, g.groups == 1 ? 1 : 2);
  plan->given[2] = given(sizes.out, type, g.channels_last, 1);
  if (g.of_channels != 0) {
    memory::dims strides = plan->given[2].dims();
    std::exclusive_scan(sizes.out.rbegin(), sizes.out.rend(), strides.rbegin(), memory::dim{1},
                        std::multiplies<>());
    strides[0] = g.of_channels * g.out_positions();
    plan->given[2] = memory::desc(sizes.out, type, strides);
  }
  plan->bias = onednn::contiguous({g.out_channels}, f32);

  const memory::desc any_in = as_given ? plan->given[0] : any_layout(sizes.in, type);
  const memory::desc any_w = any_layout(sizes.weight, type);
  const memory::desc any_out = as_given ? plan->given[2] : any_layout(sizes.out, type);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const auto training = dnnl::prop_kind::forward_training;
  const auto forward_desc = task == Task::ForwardBias
                                ? dnnl::convolution_forward::desc(
                                      training, algorithm, any_in, any_w, plan->bias, any_out,
                                      sizes.stride, sizes.dilation, sizes.before, sizes.behind)
                                : dnnl::convolution_forward::desc(
                                      training, algorithm, any_in, any_w, any_out, sizes.stride,
                                      sizes.dilation, sizes.before, sizes.behind);
  const dnnl::convolution_forward::primitive_desc forward(forward_desc, attr, onednn::engine());
  // Reference loops are slower than the caller's own matrix products.
  const auto is_fast = [](const auto& d) {
    return std::string_view(d.impl_info_str()).find("ref") == std::string_view::npos;
  };
  if (task == Task::Forward || task == Task::ForwardBias) {
    if (is_fast(forward)) plan->primitive = dnnl::convolution_forward(forward);
    plan->wanted[0] = forward.src_desc();
    plan->wanted[1] = forward.weights_desc();
    plan->wanted[2] = forward.dst_desc();
    plan->scratch = forward.scratchpad_desc();
  } else if (task == Task::GradInput) {
    const dnnl::convolution_backward_data::primitive_desc d(
        dnnl::convolution_backward_data::desc(algorithm, any_in, any_w, any_out, sizes.stride,
                                              sizes.dilation, sizes.before, sizes.behind),
        attr, onednn::engine(), forward);
    if (is_fast(d)) plan->primitive = dnnl::convolution_backward_data(d);
    plan->wanted[0] = d.diff_src_desc();
    plan->wanted[1] = d.weights_desc();
    plan->wanted[2] = d.diff_dst_desc();
    plan->scratch = d.scratchpad_desc();
  } else {
    const dnnl::convolution_backward_weights::primitive_desc d(
        dnnl::convolution_backward_weights::desc(
            algorithm, any_in, any_layout(sizes.weight, of_weight), any_out, sizes.stride,
            sizes.dilation, sizes.before, sizes.behind),
        attr, onednn::engine(), forward);
    if (is_fast(d)) plan->primitive = dnnl::convolution_backward_weights(d);
    plan->wanted[0] = d.src_desc();
    plan->wanted[1] = d.diff_weights_desc();
    plan->wanted[2] = d.diff_dst_desc();
    plan->scratch = d.scratchpad_desc();
  }
  const int written = task == Task::GradInput ? 0 : task == Task::GradWeight ? 1 : 2;
  for (int i = 0; i < 3; ++i) {
    plan->reordered[i] = plan->wanted[i] != plan->given[i];
    if (!plan->reordered[i]) continue;
    const memory::desc& from = i == written ? plan->wanted[i] : plan->given[i];
    const memory::desc& to = i == written ? plan->given[i] : plan->wanted[i];
    plan->reorders[i] =
        dnnl::reorder(dnnl::reorder::primitive_desc(onednn::engine(), from, onednn::engine(), to));
    if (i == 1 && i != written) plan->weight_pieces = weight_pieces_of(from, to);
  }
  return plan;
}

// A geometry that oneDNN refuses has a plan without a primitive.
std::shared_ptr<const Plan> plan_or_none(Task task, const ConvGeometry& g, bool as_given) {
  try {
    return make_plan(task, g, as_given);
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory) throw;
    return std::make_shared<const Plan>();
  }
}

// Primitives for images with channels innermost need no copies of them. The layouts that oneDNN
// prefers are faster otherwise.
std::shared_ptr<const Plan> best_plan(Task task, const ConvGeometry& g) {
  onednn::require_room_for_code();
  if (g.channels_last) {
    if (auto plan = plan_or_none(task, g, true); plan->primitive) return plan;
  }
  return plan_or_none(task, g, false);
}

struct PlanKey {
  Task task;
  ConvGeometry geometry;
  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};
struct PlanKeyHash {
  size_t operator()(const PlanKey& key) const {
    const ConvGeometry& g = key.geometry;
    uint64_t hash = static_cast<uint64_t>(key.task);
    const auto add = [&](int64_t v) {
      hash = (hash ^ static_cast<uint64_t>(v)) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    };
    for (const int64_t v :
         {g.batch, g.in_channels, g.out_channels, g.groups, int64_t{g.spatial},
          int64_t{g.channels_last}, int64_t{g.weight_last}, g.of_channels, int64_t{g.is_bfloat16}})
      add(v);
    for (const auto* dims : {&g.in, &g.out, &g.kernel, &g.stride, &g.padding, &g.dilation})
      for (const int64_t v : *dims) add(v);
    return hash;
  }
};

// Shapes that vary without end do not grow memory without end: a plan takes some 50 KB.
constexpr size_t kMaxPlans = 1024;

std::shared_ptr<const Plan> plan_for(Task task, const ConvGeometry& g) {
  // oneDNN makes plans under the lock too, so that no fork happens meanwhile. Never destroyed.
  static auto* const mutex = new ForkSafeMutex;
  static auto* const kept =
      new LruCache<PlanKey, std::shared_ptr<const Plan>, PlanKeyHash>(kMaxPlans);
  const PlanKey key{task, g};
  const std::lock_guard lock(*mutex);
  if (const auto* const known = kept->find(key)) return *known;
  std::shared_ptr<const Plan> plan;
  single_threaded([&] { plan = best_plan(task, g); });
  kept->put(key, plan);
  return plan;
}

// The plan of each piece of the batch; none if oneDNN has no kernel for one of them.
std::vector<std::shared_ptr<const Plan>> plans_for(Task task, const ConvGeometry& g) {
  const int64_t pieces = g.pieces(), least = g.batch / pieces;
  std::vector<std::shared_ptr<const Plan>> plans;
  std::shared_ptr<const Plan> of_size[2];  // sizes of pieces differ by one at most
  for (int64_t p = 0; p < pieces; ++p) {
    const int64_t size = g.first_image(p + 1) - g.first_image(p);
    std::shared_ptr<const Plan>& plan = of_size[size - least];
    if (!plan) plan = plan_for(task, g.piece(p));
    if (!plan->primitive) return {};
    plans.push_back(plan);
  }
  return plans;
}

// Memory of Treadle's allocator, which keeps pages between calls; oneDNN's own would be mapped and
// cleared anew by the system each time. Lives as long as the `Buffers` it is of.
class Buffers {
 public:
  memory make(const memory::desc& layout) {
    const auto bytes = static_cast<int64_t>(layout.get_size());
    if (bytes == 0) return memory(layout, onednn::engine(), nullptr);
    held_.push_back(empty_cpu({bytes}, ScalarType::UInt8));
    return memory(layout, onednn::engine(), held_.back().data());
  }

 private:
  std::vector<Tensor> held_;
};

void reorder(const dnnl::reorder& primitive, const memory& from, memory& to) {
  single_threaded([&] {
    dnnl::stream stream(onednn::engine());
    dnnl::reorder(primitive).execute(stream, const_cast<memory&>(from), to);
    stream.wait();
  });
}

void reorder_weight(const Plan& plan, void* given, memory& wanted) {
  if (plan.weight_pieces.empty())
    return reorder(plan.reorders[1], memory(plan.given[1], onednn::engine(), given), wanted);
  parallel_chunks(static_cast<int64_t>(plan.weight_pieces.size()), [&](int64_t p) {
    const Plan::WeightPiece& piece = plan.weight_pieces[static_cast<size_t>(p)];
    memory to(piece.wanted, onednn::engine(), wanted.get_data_handle());
    reorder(piece.reorder, memory(piece.given, onednn::engine(), given), to);
  });
}

// Adds the gradients of the weight that the pieces made, in their order, and writes the sum in the
// caller's layout. The layout may depend on the size of a piece.
void add_up(const std::vector<std::shared_ptr<const Plan>>& plans, std::vector<memory>& parts,
            Buffers& buffers, float* result) {
  const Plan& first = *plans[0];
  std::vector<const float*> addends;
  for (size_t p = 1; p < parts.size(); ++p) {
    if (plans[p]->wanted[1] != first.wanted[1]) {
      const memory own = parts[p];
      parts[p] = buffers.make(first.wanted[1]);
      reorder(dnnl::reorder(own, parts[p]), own, parts[p]);
    }
    addends.push_back(static_cast<const float*>(parts[p].get_data_handle()));
  }
  float* const total = static_cast<float*>(parts[0].get_data_handle());
  const int64_t size = static_cast<int64_t>(first.wanted[1].get_size() / sizeof(float));
  parallel_for(size, 32768, [&](int64_t begin, int64_t end) {
    for (const float* const addend : addends) {
      for (int64_t i = begin; i < end; ++i) total[i] += addend[i];
    }
  });
  memory given(first.given[1], onednn::engine(), result);
  if (first.reordered[1]) {
    reorder(first.reorders[1], parts[0], given);
  } else {
    std::copy_n(total, size, result);
  }
}

int64_t item_of(const ConvGeometry& g) { return g.is_bfloat16 ? 2 : 4; }

// f(), with the errors of oneDNN as Treadle's.
template <class F>
bool with_errors_told(F&& f) {
  try {
    return f();
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory)
      fail<ErrorKind::OutOfMemory>(OpName("convolution"), "out of memory for the work space");
    fail<ErrorKind::Runtime>(OpName("convolution"), "the convolution library failed: ", e.what());
  }
}

// `written` (0 input, 1 weight, 2 output) is the result; the other two are operands.
bool run(Task task, const ConvGeometry& g, int written, const int arguments[3], void* const data[3],
         const float* bias) {
  return with_errors_told([&] {
    const auto plans = plans_for(task, g);
    if (plans.empty()) return false;
    const Plan& first = *plans[0];
    Buffers shared;
    memory weights;  // in the layout of the first piece, where that is not the caller's
    if (written != 1 && first.reordered[1]) {
      weights = shared.make(first.wanted[1]);
      reorder_weight(first, data[1], weights);
    }
    std::vector<memory> parts(written == 1 && plans.size() > 1 ? plans.size() : 0);
    for (size_t p = 0; p < parts.size(); ++p) parts[p] = shared.make(plans[p]->wanted[1]);
    const int64_t image[] = {g.in_image() * item_of(g), 0, g.out_image() * item_of(g)};  // bytes
    parallel_chunks(g.pieces(), [&](int64_t p) {
      single_threaded([&] {
        const Plan& plan = *plans[static_cast<size_t>(p)];
        Buffers own;
        dnnl::stream stream(onednn::engine());
        std::unordered_map<int, memory> args;
        memory given[3], wanted[3];
        for (int i = 0; i < 3; ++i) {
          if (i == 1 && weights && plan.wanted[1] == first.wanted[1]) {
            wanted[1] = weights;
          } else if (i == 1 && !parts.empty()) {
            wanted[1] = parts[static_cast<size_t>(p)];
          } else {
            given[i] = memory(plan.given[i], onednn::engine(),
                              static_cast<char*>(data[i]) + g.first_image(p) * image[i]);
            wanted[i] = plan.reordered[i] ? own.make(plan.wanted[i]) : given[i];
            if (plan.reordered[i] && i != written)
              dnnl::reorder(plan.reorders[i]).execute(stream, given[i], wanted[i]);
          }
          args[arguments[i]] = wanted[i];
        }
        if (bias)
          args[DNNL_ARG_BIAS] = memory(plan.bias, onednn::engine(), const_cast<float*>(bias));
        args[DNNL_ARG_SCRATCHPAD] = own.make(plan.scratch);
        plan.primitive.execute(stream, args);
        if (plan.reordered[written] && parts.empty())
          dnnl::reorder(plan.reorders[written]).execute(stream, wanted[written], given[written]);
        stream.wait();
      });
    });
    if (!parts.empty()) add_up(plans, parts, shared, static_cast<float*>(data[1]));
    return true;
  });
}

// The gradient of a large weight from few positions takes longer to add up from pieces of the batch
// than to compute. So many slices of its output channels are computed instead; 1: none.
int64_t weight_slices(const ConvGeometry& g) {
  constexpr int64_t kLarge = 1 << 17, kFewPositions = 4096, kLeastChannels = 32;
  if (g.groups > 1 || g.channels_last || g.weight_elements() < kLarge ||
      g.batch * g.out_positions() > kFewPositions)
    return 1;
  int64_t slices = 8;
  while (slices > 1 && g.out_channels % (slices * kLeastChannels) != 0) slices /= 2;
  return slices;
}

bool grad_weight_in_slices(const ConvGeometry& g, int64_t slices, void* input, char* grad,
                           float* grad_weight) {
  ConvGeometry slice = g;
  slice.out_channels = g.out_channels / slices;
  slice.of_channels = g.out_channels;
  const auto found = plan_for(Task::GradWeight, slice);
  if (!found->primitive) return false;
  const Plan& plan = *found;
  const auto& engine = onednn::engine();
  Buffers shared;
  memory in(plan.given[0], engine, input);
  if (plan.reordered[0]) {
    const memory given = in;
    in = shared.make(plan.wanted[0]);
    reorder(plan.reorders[0], given, in);
  }
  parallel_chunks(slices, [&](int64_t s) {
    Buffers own;
    memory out(plan.given[2], engine,
               grad + s * slice.out_channels * g.out_positions() * item_of(g));
    if (plan.reordered[2]) {
      const memory given = out;
      out = own.make(plan.wanted[2]);
      reorder(plan.reorders[2], given, out);
    }
    memory result(plan.given[1], engine, grad_weight + s * slice.weight_elements());
    memory computed = plan.reordered[1] ? own.make(plan.wanted[1]) : result;
    single_threaded([&] {
      dnnl::stream stream(engine);
      plan.primitive.execute(stream, {{DNNL_ARG_SRC, in},
                                      {DNNL_ARG_DIFF_DST, out},
                                      {DNNL_ARG_DIFF_WEIGHTS, computed},
                                      {DNNL_ARG_SCRATCHPAD, own.make(plan.scratch)}});
      stream.wait();
    });
    if (plan.reordered[1]) reorder(plan.reorders[1], computed, result);
  });
  return true;
}

}  // namespace

bool conv_forward_onednn(const ConvGeometry& g, const void* input, const void* weight,
                         const float* bias, void* output) {
  constexpr int arguments[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
  void* const data[] = {const_cast<void*>(input), const_cast<void*>(weight), output};
  return run(bias ? Task::ForwardBias : Task::Forward, g, 2, arguments, data, bias);
}

bool conv_grad_input_onednn(const ConvGeometry& g, const void* grad, const void* weight,
                            void* grad_input) {
  constexpr int arguments[] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST};
  void* const data[] = {grad_input, const_cast<void*>(weight), const_cast<void*>(grad)};
  return run(Task::GradInput, g, 0, arguments, data, nullptr);
}

bool conv_grad_weight_onednn(const ConvGeometry& g, const void* grad, const void* input,
                             float* grad_weight) {
  constexpr int arguments[] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST};
  const auto from_images = [&](const ConvGeometry& some, int64_t first, float* result) {
    const auto image = [&](const void* images, int64_t size) {
      return static_cast<char*>(const_cast<void*>(images)) + first * size * item_of(g);
    };
    void* const data[] = {image(input, g.in_image()), result, image(grad, g.out_image())};
    const int64_t slices = weight_slices(some);
    if (slices > 1 && with_errors_told([&] {
          return grad_weight_in_slices(some, slices, data[0], static_cast<char*>(data[2]), result);
        }))
      return true;
    return run(Task::GradWeight, some, 1, arguments, data, nullptr);
  };
  // oneDNN adds up all positions in float: so many of them go in parts, whose sums are doubles.
  constexpr int64_t kTerms = 32768, kManyTerms = 8 * kTerms;
  const int64_t images = std::max<int64_t>(1, kTerms / g.out_positions());
  if (g.batch * g.out_positions() <= kManyTerms || images >= g.batch)
    return from_images(g, 0, grad_weight);
  std::vector<float> part(static_cast<size_t>(g.weight_elements()));
  std::vector<double> sums(part.size(), 0.0);
  ConvGeometry some = g;
  for (int64_t first = 0; first < g.batch; first += images) {
    some.batch = std::min(images, g.batch - first);
    if (!from_images(some, first, part.data())) return false;
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(part[i]);
  }
  std::copy(sums.begin(), sums.end(), grad_weight);
  return true;
}

}  // namespace treadle::cpu
