#include "aten/cpu/conv_onednn.h"

#include <map>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>

#include "core/error.h"
#include "core/parallel.h"

namespace treadle::cpu {
namespace {

using dnnl::memory;

const dnnl::engine& engine() {
  static const dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}

enum class Task { Forward, ForwardBias, GradInput, GradWeight };

// A primitive with the layouts it wants and, where those are not the plain ones, the reorders to
// and from them.
struct Plan {
  dnnl::primitive primitive;
  memory::desc plain[3], wanted[3];  // input, weight, output (or their gradients)
  memory::desc bias, scratch;
  dnnl::reorder into[3], back[3];
  bool reordered[3];
};

memory::dims dims(std::initializer_list<int64_t> v) { return memory::dims(v); }

std::shared_ptr<const Plan> make_plan(Task task, const ConvGeometry& g) {
  using Tag = memory::format_tag;
  const auto f32 = memory::data_type::f32;
  const memory::dims in = dims({g.batch, g.in_channels, g.in_height, g.in_width});
  const memory::dims out = dims({g.batch, g.out_channels, g.out_height, g.out_width});
  const memory::dims w =
      g.groups == 1 ? dims({g.out_channels, g.in_channels, g.kernel_height, g.kernel_width})
                    : dims({g.groups, g.out_channels / g.groups, g.in_channels / g.groups,
                            g.kernel_height, g.kernel_width});
  const memory::dims strides = dims({g.stride[0], g.stride[1]});
  const memory::dims dilates = dims({g.dilation[0] - 1, g.dilation[1] - 1});
  const memory::dims padding = dims({g.padding[0], g.padding[1]});
  const memory::desc any_in(in, f32, Tag::any), any_w(w, f32, Tag::any),
      any_out(out, f32, Tag::any);

  auto plan = std::make_shared<Plan>();
  plan->plain[0] = memory::desc(in, f32, Tag::nchw);
  plan->plain[1] = memory::desc(w, f32, g.groups == 1 ? Tag::oihw : Tag::goihw);
  plan->plain[2] = memory::desc(out, f32, Tag::nchw);
  plan->bias = memory::desc(dims({g.out_channels}), f32, Tag::x);

  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const auto training = dnnl::prop_kind::forward_training;
  const auto forward_desc =
      task == Task::ForwardBias
          ? dnnl::convolution_forward::desc(training, algorithm, any_in, any_w, plan->bias, any_out,
                                            strides, dilates, padding, padding)
          : dnnl::convolution_forward::desc(training, algorithm, any_in, any_w, any_out, strides,
                                            dilates, padding, padding);
  const dnnl::convolution_forward::primitive_desc forward(forward_desc, attr, engine());
  if (task == Task::Forward || task == Task::ForwardBias) {
    plan->primitive = dnnl::convolution_forward(forward);
    plan->wanted[0] = forward.src_desc();
    plan->wanted[1] = forward.weights_desc();
    plan->wanted[2] = forward.dst_desc();
    plan->scratch = forward.scratchpad_desc();
  } else if (task == Task::GradInput) {
    const dnnl::convolution_backward_data::primitive_desc d(
        dnnl::convolution_backward_data::desc(algorithm, any_in, any_w, any_out, strides, dilates,
                                              padding, padding),
        attr, engine(), forward);
    plan->primitive = dnnl::convolution_backward_data(d);
    plan->wanted[0] = d.diff_src_desc();
    plan->wanted[1] = d.weights_desc();
    plan->wanted[2] = d.diff_dst_desc();
    plan->scratch = d.scratchpad_desc();
  } else {
    const dnnl::convolution_backward_weights::primitive_desc d(
        dnnl::convolution_backward_weights::desc(algorithm, any_in, any_w, any_out, strides,
                                                 dilates, padding, padding),
        attr, engine(), forward);
    plan->primitive = dnnl::convolution_backward_weights(d);
    plan->wanted[0] = d.src_desc();
    plan->wanted[1] = d.diff_weights_desc();
    plan->wanted[2] = d.diff_dst_desc();
    plan->scratch = d.scratchpad_desc();
  }
  for (int i = 0; i < 3; ++i) {
    plan->reordered[i] = plan->wanted[i] != plan->plain[i];
    if (!plan->reordered[i]) continue;
    plan->into[i] = dnnl::reorder(
        dnnl::reorder::primitive_desc(engine(), plan->plain[i], engine(), plan->wanted[i]));
    plan->back[i] = dnnl::reorder(
        dnnl::reorder::primitive_desc(engine(), plan->wanted[i], engine(), plan->plain[i]));
  }
  return plan;
}

std::shared_ptr<const Plan> plan_for(Task task, const ConvGeometry& g) {
  static std::mutex mutex;
  static std::map<std::pair<Task, ConvGeometry>, std::shared_ptr<const Plan>> plans;
  constexpr size_t kMaxPlans = 512;  // shapes that vary without end do not grow memory without end
  const std::lock_guard lock(mutex);
  if (const auto it = plans.find({task, g}); it != plans.end()) return it->second;
  if (plans.size() >= kMaxPlans) plans.clear();
  return plans[{task, g}] = make_plan(task, g);
}

// `written` (0 input, 1 weight, 2 output) is the result; the other two are operands.
void run(Task task, const ConvGeometry& g, int written, const int arguments[3],
         float* const data[3], const float* bias) {
  try {
    single_threaded([&] {
      const auto plan = plan_for(task, g);
      dnnl::stream stream(engine());
      std::unordered_map<int, memory> args;
      memory plain[3], wanted[3];
      for (int i = 0; i < 3; ++i) {
        plain[i] = memory(plan->plain[i], engine(), data[i]);
        wanted[i] = plan->reordered[i] ? memory(plan->wanted[i], engine()) : plain[i];
        if (plan->reordered[i] && i != written)
          dnnl::reorder(plan->into[i]).execute(stream, plain[i], wanted[i]);
        args[arguments[i]] = wanted[i];
      }
      if (bias) args[DNNL_ARG_BIAS] = memory(plan->bias, engine(), const_cast<float*>(bias));
      args[DNNL_ARG_SCRATCHPAD] = memory(plan->scratch, engine());
      plan->primitive.execute(stream, args);
      if (plan->reordered[written])
        dnnl::reorder(plan->back[written]).execute(stream, wanted[written], plain[written]);
      stream.wait();
    });
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory)
      fail<ErrorKind::OutOfMemory>("conv2d: out of memory for the convolution's work space");
    fail<ErrorKind::Runtime>("conv2d: the convolution library refused this geometry: ", e.what());
  }
}

}  // namespace

void conv_forward_onednn(const ConvGeometry& g, const float* input, const float* weight,
                         const float* bias, float* output) {
  constexpr int arguments[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
  float* const data[] = {const_cast<float*>(input), const_cast<float*>(weight), output};
  run(bias ? Task::ForwardBias : Task::Forward, g, 2, arguments, data, bias);
}

void conv_grad_input_onednn(const ConvGeometry& g, const float* grad, const float* weight,
                            float* grad_input) {
  constexpr int arguments[] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST};
  float* const data[] = {grad_input, const_cast<float*>(weight), const_cast<float*>(grad)};
  run(Task::GradInput, g, 0, arguments, data, nullptr);
}

void conv_grad_weight_onednn(const ConvGeometry& g, const float* grad, const float* input,
                             float* grad_weight) {
  constexpr int arguments[] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST};
  float* const data[] = {const_cast<float*>(input), grad_weight, const_cast<float*>(grad)};
  run(Task::GradWeight, g, 1, arguments, data, nullptr);
}

}  // namespace treadle::cpu
