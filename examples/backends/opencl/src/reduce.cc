// Generated reductions. A fold goes over blocks of elements in eight lanes, each over a part of the
// block that follows the one before, so that partial results are combined in order; the result
// depends on the sizes only. Long folds of few outputs are done in pieces, whose results a second
// kernel combines.
//
// SPDX-License-Identifier: Apache-2.0
#include "generated.h"
#include "launch.h"
#include "source.h"

namespace treadle_opencl {

namespace plugin = treadle::plugin;

namespace {

constexpr size_t kMaxGeometry = 768;
constexpr int64_t kPiece = 8192;     // elements of a piece
constexpr int64_t kFewOutputs = 64;  // more keep the device busy without pieces

int64_t item_size(treadle_dtype dtype) {
  return static_cast<int64_t>(plugin::item_size(static_cast<plugin::DType>(dtype)));
}
// The memory of a value that is computed with.
int64_t value_size(treadle_dtype compute) { return item_size(compute); }

std::string source_of(const treadle_reduce_call& call, treadle_dtype compute, bool fails,
                      bool follows) {
  const Dialect dialect;
  const auto number = [&](const treadle_expression& e) {
    return plugin::expression_number(e, compute, dialect);
  };
  const std::string type = "global const " + storage_type(call.in.dtype) + "*";
  const std::string fault = fails ? ", global long* fault" : "", pass = fails ? ", fault" : "";
  std::string text = prelude(compute);
  text += "#define KEPT " + std::to_string(call.kept_dims) + "\n#define FOLDED " +
          std::to_string(call.folded_dims) + "\n";
  text +=
      "typedef struct { long kept[KEPT + 1], in[KEPT + 1], out[KEPT + 1], folded[FOLDED + 1], "
      "along[FOLDED + 1]; } geometry;\n";
  text += "inline T step_one(T v_acc, T v_x" + fault + ") { return " + number(call.step) + "; }\n";
  text += "inline T combine(T v_a, T v_b" + fault + ") { return " + number(call.combine) + "; }\n";
  text += "inline T finish(T v_acc, T v_n" + fault + ") { return " +
          (call.final.count ? number(call.final) : "v_acc") + "; }\n";
  text += "inline T element(tr_bytes p, long stride) { return " +
          converted(follows ? "(*((" + type + ")p + stride))" : "(*((" + type + ")(p + stride)))",
                    call.in.dtype, compute) +
          "; }\n";
  const bool starts = call.init.count != 0;
  const std::string init = starts ? number(call.init) : "";
  // `n` > 0 elements from p; where they follow each other, `along` is 1 and counts elements.
  text +=
      "inline T block(tr_bytes p, long along, long n" + fault +
      ") {\n"
      "  const long lane = n / 8;\n  T acc;\n  long i = 0;\n  if (lane > 1) {\n    T lanes[8];\n";
  if (starts) {
    text += "    for (int l = 0; l < 8; ++l) lanes[l] = " + init + ";\n    long j = 0;\n";
  } else {
    text +=
        "    for (int l = 0; l < 8; ++l) lanes[l] = element(p, l * lane * along);\n"
        "    long j = 1;\n";
  }
  text +=
      "    for (; j < lane; ++j)\n      for (int l = 0; l < 8; ++l)\n"
      "        lanes[l] = step_one(lanes[l], element(p, (l * lane + j) * along)" +
      pass +
      ");\n"
      "    for (int width = 1; width < 8; width *= 2)\n"
      "      for (int l = 0; l < 8; l += 2 * width)\n"
      "        lanes[l] = combine(lanes[l], lanes[l + width]" +
      pass +
      ");\n"
      "    acc = lanes[0];\n    i = 8 * lane;\n  } else {\n";
  text += starts ? "    acc = " + init + ";\n" : "    acc = element(p, 0);\n    i = 1;\n";
  text += "  }\n  for (; i < n; ++i) acc = step_one(acc, element(p, i * along)" + pass +
          ");\n  return acc;\n}\n";
  // Elements [at, end) of those folded.
  text += "inline T fold(tr_bytes base, const geometry g, long at, long end" + fault +
          ") {\n"
          "  T acc;\n  int first = 1;\n  while (at < end) {\n"
          "    tr_bytes p = base;\n    long rest = at, run = 1, along = 0;\n"
          "    for (int d = FOLDED - 1; d >= 0; --d) {\n      const long i = rest % g.folded[d];\n"
          "      rest /= g.folded[d];\n      p += i * g.along[d];\n"
          "      if (d == FOLDED - 1) run = g.folded[d] - i, along = " +
          std::string(follows ? "1" : "g.along[d]") +
          ";\n    }\n"
          "    run = min(min(run, end - at), 1024L);\n"
          "    const T part = block(p, along, run" +
          pass +
          ");\n"
          "    acc = first ? part : combine(acc, part" +
          pass +
          ");\n    first = 0;\n    at += run;\n"
          "  }\n  return acc;\n}\n";
  text +=
      "inline long place(const long strides[KEPT + 1], const geometry g, long at) {\n"
      "  long offset = 0;\n  for (int d = KEPT - 1; d >= 0; --d) {\n"
      "    offset += at % g.kept[d] * strides[d];\n    at /= g.kept[d];\n  }\n"
      "  return offset;\n}\n";
  const std::string store = "*((global " + storage_type(call.out.dtype) +
                            "*)(out + out_offset + "
                            "place(g.out, g, at))) = " +
                            converted("finish(acc, count" + pass + ")", compute, call.out.dtype) +
                            ";\n";
  text +=
      "kernel void whole(const geometry g, tr_bytes in, const long in_offset, tr_bytes out,\n"
      "                  const long out_offset, const long outputs, const long n,\n"
      "                  const T count, const long per" +
      fault +
      ") {\n"
      "  long at = (long)get_global_id(0) * per;\n  const long end = min(at + per, outputs);\n"
      "  for (; at < end; ++at) {\n"
      "    const T acc = fold(in + in_offset + place(g.in, g, at), g, 0, n" +
      pass + ");\n    " + store + "  }\n}\n";
  text +=
      "kernel void pieces(const geometry g, tr_bytes in, const long in_offset,\n"
      "                   global T* partial, const long total, const long pieces,\n"
      "                   const long piece, const long n" +
      fault +
      ") {\n"
      "  const long at = (long)get_global_id(0);\n  if (at >= total) return;\n"
      "  const long begin = at % pieces * piece;\n"
      "  partial[at] = fold(in + in_offset + place(g.in, g, at / pieces), g, begin,\n"
      "                     min(begin + piece, n)" +
      pass + ");\n}\n";
  text +=
      "kernel void join(const geometry g, global const T* partial, tr_bytes out,\n"
      "                 const long out_offset, const long outputs, const long pieces,\n"
      "                 const T count" +
      fault +
      ") {\n"
      "  const long at = (long)get_global_id(0);\n  if (at >= outputs) return;\n"
      "  T acc = partial[at * pieces];\n"
      "  for (long i = 1; i < pieces; ++i)\n"
      "    acc = combine(acc, partial[at * pieces + i]" +
      pass + ");\n  " + store + "}\n";
  return text;
}

// A buffer that lives until the queue no longer needs it.
class Scratch {
 public:
  Scratch(Device& device, size_t nbytes) {
    cl_int code = CL_SUCCESS;
    memory_ = clCreateBuffer(device.context(), CL_MEM_READ_WRITE, nbytes, nullptr, &code);
    succeed(code, "clCreateBuffer");
  }
  Scratch(const Scratch&) = delete;
  ~Scratch() { clReleaseMemObject(memory_); }
  void* storage() const { return memory_; }

 private:
  cl_mem memory_ = nullptr;
};

void add_count(Launch& launch, int64_t n, treadle_dtype compute) {
  plugin::visit_all_dtypes(static_cast<plugin::DType>(compute), [&](auto type) {
    using T = typename decltype(type)::type;
    const T converted = plugin::convert<T>(n);
    launch.bytes(&converted, sizeof converted);
  });
}

}  // namespace

bool run_reduce(Device& device, const treadle_reduce_call& call) {
  const treadle_dtype compute = plugin::compute_dtype(call.compute);
  bool fails = false;
  for (const treadle_expression* e : {&call.init, &call.step, &call.combine, &call.final}) {
    for (const std::string& name : plugin::functions_of(*e)) {
      if (!has_function(name, compute)) return false;
      fails = fails || can_fail(name, compute);
    }
  }
  const int32_t kept = call.kept_dims, folded = call.folded_dims;
  // One entry more than there are dimensions: C has no empty arrays.
  std::vector<int64_t> geometry;
  const auto add = [&](const int64_t* values, int32_t count) {
    geometry.insert(geometry.end(), values, values + count);
    geometry.push_back(0);
  };
  add(call.kept_shape, kept);
  add(call.in.strides, kept);
  add(call.out.strides, kept);
  add(call.folded_shape, folded);
  add(call.folded_strides, folded);
  if (geometry.size() * sizeof(int64_t) > kMaxGeometry) return false;

  const bool follows = folded > 0 && call.folded_strides[folded - 1] == item_size(call.in.dtype);
  const std::string key = "reduce " + std::to_string(reinterpret_cast<uintptr_t>(call.key)) + ' ' +
                          std::to_string(compute) + ' ' + std::to_string(call.in.dtype) + ' ' +
                          std::to_string(call.out.dtype) + ' ' + std::to_string(kept) + ' ' +
                          std::to_string(folded) + (follows ? " follows" : "");
  const auto kernel = [&](const char* name) {
    return device.kernel(key, name, [&] { return source_of(call, compute, fails, follows); });
  };
  const size_t bytes = geometry.size() * sizeof(int64_t);
  const auto finished = [&](Launch& launch) -> Launch& {
    return fails ? launch.buffer(device.fault()) : launch;
  };
  if (call.folded > kPiece && call.outputs < kFewOutputs) {
    const int64_t piece = std::max(kPiece, (call.folded + 255) / 256);
    const int64_t pieces = (call.folded + piece - 1) / piece, total = pieces * call.outputs;
    const Scratch partial(device, static_cast<size_t>(total * value_size(compute)));
    Launch first(device, kernel("pieces"));
    first.bytes(geometry.data(), bytes).buffer(call.in.storage).scalar<int64_t>(call.in.offset);
    first.buffer(partial.storage()).scalar<int64_t>(total).scalar<int64_t>(pieces);
    first.scalar<int64_t>(piece).scalar<int64_t>(call.folded);
    finished(first).over(total);
    Launch second(device, kernel("join"));
    second.bytes(geometry.data(), bytes).buffer(partial.storage()).buffer(call.out.storage);
    second.scalar<int64_t>(call.out.offset).scalar<int64_t>(call.outputs).scalar<int64_t>(pieces);
    add_count(second, call.folded, compute);
    finished(second).over(call.outputs);
  } else {
    const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, call.folded));
    const int64_t per = Launch::per_item(device, call.outputs, grain);
    Launch launch(device, kernel("whole"));
    launch.bytes(geometry.data(), bytes).buffer(call.in.storage).scalar<int64_t>(call.in.offset);
    launch.buffer(call.out.storage).scalar<int64_t>(call.out.offset);
    launch.scalar<int64_t>(call.outputs).scalar<int64_t>(call.folded);
    add_count(launch, call.folded, compute);
    launch.scalar<int64_t>(per);
    finished(launch).over((call.outputs + per - 1) / per);
  }
  if (fails)
    plugin::check(device.take_fault().mark == 0, plugin::ErrorKind::Runtime, call.name,
                  ": expected a non-zero divisor, got 0");
  return true;
}

}  // namespace treadle_opencl
