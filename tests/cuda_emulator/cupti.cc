// CUPTI's functions for emulated devices.
//
// SPDX-License-Identifier: Apache-2.0
#include <cupti.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <variant>

#include "tests/cuda_emulator/activity.h"

namespace treadle::cuda::emulator {
namespace {

using Record = std::variant<CUpti_ActivityAPI, CUpti_ActivityKernel10, CUpti_ActivityMemcpy6,
                            CUpti_ActivityMemcpyPtoP4, CUpti_ActivityMemset4>;

struct Recorder {
  std::mutex gate;
  std::set<CUpti_ActivityKind> enabled;
  std::deque<Record> records;
  std::set<std::string> names;  // records refer to them
  Record shown;                 // the one that was read last
  std::map<cudaStream_t, uint32_t> streams;
  uint32_t calls = 0;
  CUpti_TimestampCallbackFunc clock = nullptr;
  CUpti_BuffersCallbackRequestFunc give = nullptr;
  CUpti_BuffersCallbackCompleteFunc take = nullptr;
};
Recorder& the() {
  static auto* recorder = new Recorder;
  return *recorder;
}

uint32_t number_of(cudaStream_t stream) {
  constexpr uint32_t kFirst = 7;  // the default stream's
  const auto next = static_cast<uint32_t>(the().streams.size()) + kFirst + 1;
  return stream ? the().streams.try_emplace(stream, next).first->second : kFirst;
}

template <class R>
R made(const Activity& a, int device, cudaStream_t stream, uint32_t call, uint64_t begin) {
  R r{};
  r.kind = a.kind;
  r.start = begin;
  r.end = the().clock();
  r.deviceId = static_cast<uint32_t>(device);
  r.streamId = number_of(stream);
  r.correlationId = call;
  return r;
}

void note(const Activity& a, int device, cudaStream_t stream, uint32_t call, uint64_t begin) {
  Recorder& recorder = the();
  const std::lock_guard lock(recorder.gate);
  if (!recorder.enabled.count(a.kind)) return;
  const auto add = [&](auto r, auto fill) {
    fill(r);
    recorder.records.emplace_back(r);
  };
  switch (a.kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return add(made<CUpti_ActivityMemcpy6>(a, device, stream, call, begin), [&](auto& r) {
        r.bytes = a.bytes;
        r.copyKind = static_cast<uint8_t>(a.copy);
      });
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return add(made<CUpti_ActivityMemcpyPtoP4>(a, device, stream, call, begin), [&](auto& r) {
        r.bytes = a.bytes;
        r.copyKind = static_cast<uint8_t>(a.copy);
      });
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return add(made<CUpti_ActivityMemset4>(a, device, stream, call, begin),
                 [&](auto& r) { r.bytes = a.bytes; });
    default:
      return add(made<CUpti_ActivityKernel10>(a, device, stream, call, begin),
                 [&](auto& r) { r.name = recorder.names.insert(a.name).first->c_str(); });
  }
}

}  // namespace

std::function<void()> recorded(const Activity& activity, int device, cudaStream_t stream,
                               std::function<void()> work) {
  Recorder& recorder = the();
  const std::lock_guard lock(recorder.gate);
  if (recorder.enabled.empty() || !recorder.clock) return work;
  const uint32_t call = ++recorder.calls;
  CUpti_ActivityAPI api{};
  api.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  api.start = api.end = recorder.clock();
  api.threadId = static_cast<uint32_t>(syscall(SYS_gettid));
  api.correlationId = call;
  recorder.records.emplace_back(api);
  return [=, work = std::move(work)] {
    const uint64_t begin = the().clock();
    work();
    note(activity, device, stream, call, begin);
  };
}

}  // namespace treadle::cuda::emulator

namespace e = treadle::cuda::emulator;

extern "C" {

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc give,
                                           CUpti_BuffersCallbackCompleteFunc take) {
  e::the().give = give;
  e::the().take = take;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock) {
  e::the().clock = clock;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  return type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM ? CUPTI_SUCCESS : CUPTI_ERROR_NOT_SUPPORTED;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(e::the().gate);
  e::the().enabled.insert(kind);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(e::the().gate);
  e::the().enabled.erase(kind);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId, uint8_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityFlushAll(uint32_t) {
  uint8_t* buffer = nullptr;
  size_t size = 0, most = 0;
  e::the().give(&buffer, &size, &most);
  size_t count;
  {
    const std::lock_guard lock(e::the().gate);
    count = e::the().records.size();
  }
  e::the().take(nullptr, 0, buffer, size, count);
  return CUPTI_SUCCESS;
}
// Records are handed out one by one, not from the buffer.
CUptiResult cuptiActivityGetNextRecord(uint8_t*, size_t, CUpti_Activity** record) {
  e::Recorder& recorder = e::the();
  const std::lock_guard lock(recorder.gate);
  if (recorder.records.empty()) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  recorder.shown = recorder.records.front();
  recorder.records.pop_front();
  *record =
      std::visit([](auto& r) { return reinterpret_cast<CUpti_Activity*>(&r); }, recorder.shown);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult code, const char** text) {
  *text = code == CUPTI_SUCCESS ? "CUPTI_SUCCESS" : "CUPTI_ERROR_UNKNOWN";
  return CUPTI_SUCCESS;
}

}  // extern "C"
