// The conversion of CUPTI's records, against a simulated CUPTI: kernels, copies and fills with the
// calls that queued them, and errors.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/trace.h"

#include <gtest/gtest.h>

#include <cstring>

#include "aten/backend/cuda/backend.h"
#include "aten/backend/cuda/testing_device.h"
#include "core/base/error.h"

namespace treadle::cuda {
namespace {

// One record of each kind, by the address of its first field.
struct Simulated {
  std::vector<const void*> records;
  std::vector<int> enabled;
  CUpti_BuffersCallbackRequestFunc give = nullptr;
  CUpti_BuffersCallbackCompleteFunc take = nullptr;
  CUptiResult answer = CUPTI_SUCCESS;
};
Simulated& simulated() {
  static Simulated s;
  return s;
}

Cupti functions() {
  Cupti c;
  c.set_thread_id_type = [](CUpti_ActivityThreadIdType) { return CUPTI_SUCCESS; };
  c.register_timestamp_callback = [](CUpti_TimestampCallbackFunc) { return CUPTI_SUCCESS; };
  c.register_callbacks = [](CUpti_BuffersCallbackRequestFunc give,
                            CUpti_BuffersCallbackCompleteFunc take) {
    simulated().give = give;
    simulated().take = take;
    return CUPTI_SUCCESS;
  };
  c.enable = [](CUpti_ActivityKind kind) {
    simulated().enabled.push_back(kind);
    return simulated().answer;
  };
  c.disable = [](CUpti_ActivityKind kind) {
    std::erase(simulated().enabled, kind);
    return CUPTI_SUCCESS;
  };
  c.enable_driver_api = [](CUpti_CallbackId, uint8_t) { return CUPTI_SUCCESS; };
  c.flush_all = [](uint32_t) {
    uint8_t* buffer = nullptr;
    size_t size = 0, most = 0;
    simulated().give(&buffer, &size, &most);
    simulated().take(nullptr, 0, buffer, size, simulated().records.size());
    return CUPTI_SUCCESS;
  };
  c.get_next_record = [](uint8_t*, size_t, CUpti_Activity** record) {
    if (simulated().records.empty()) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = static_cast<CUpti_Activity*>(const_cast<void*>(simulated().records.front()));
    simulated().records.erase(simulated().records.begin());
    return CUPTI_SUCCESS;
  };
  c.get_result_string = [](CUptiResult, const char** text) {
    *text = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES";
    return CUPTI_SUCCESS;
  };
  return c;
}

class Traces : public ::testing::Test {
 protected:
  Traces() {
    TestingDevice::start();
    simulated() = {{}, {}, simulated().give, simulated().take, CUPTI_SUCCESS};
    cupti() = functions();
  }
  CudaTrace& trace = CudaTrace::the();
};

std::string error_of(std::function<void()> f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Runtime);
    return e.what();
  }
  return "nothing raised";
}

TEST_F(Traces, TellWhatWasDoneAndWhoQueuedIt) {
  trace.start();
  EXPECT_EQ(simulated().enabled.size(), 5u);
  CUpti_ActivityAPI launch{}, copying{};
  launch.kind = copying.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  launch.start = 1000;
  launch.threadId = copying.threadId = 42;
  launch.correlationId = 7;
  copying.start = 1500;
  copying.correlationId = 8;
  CUpti_ActivityKernel10 kernel{};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.name = "_ZN7treadle4cuda3addEPf";
  kernel.start = 3000;
  kernel.end = 3500;
  kernel.deviceId = 1;
  kernel.streamId = 13;
  kernel.correlationId = 7;
  CUpti_ActivityMemcpy6 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.start = 2000;
  copy.end = 2200;
  copy.bytes = 64;
  copy.correlationId = 8;
  CUpti_ActivityMemset4 fill{};
  fill.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  fill.start = 5000;
  fill.end = 5001;
  fill.bytes = 16;
  fill.correlationId = 99;
  // A call that is recorded after the work that it queued.
  simulated().records = {&kernel, &copy, &launch, &copying, &fill};
  const std::vector<DeviceEvent> events = trace.stop();
  EXPECT_TRUE(simulated().enabled.empty());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].name, "Memcpy HtoD");
  EXPECT_EQ(events[0].kind, DeviceEvent::Kind::Copy);
  EXPECT_EQ(events[0].bytes, 64);
  EXPECT_EQ(events[0].queued_ns, 1500);
  EXPECT_EQ(events[1].name, "treadle::cuda::add(float*)");
  EXPECT_EQ(events[1].kind, DeviceEvent::Kind::Kernel);
  EXPECT_EQ(events[1].begin_ns, 3000);
  EXPECT_EQ(events[1].end_ns, 3500);
  EXPECT_EQ(events[1].device, 1);
  EXPECT_EQ(events[1].stream, 13u);
  EXPECT_EQ(events[1].queued_ns, 1000);
  EXPECT_EQ(events[1].thread, 42u);
  EXPECT_EQ(events[1].call, 7u);
  EXPECT_EQ(events[2].name, "Memset");
  EXPECT_EQ(events[2].kind, DeviceEvent::Kind::Fill);
  EXPECT_EQ(events[2].queued_ns, 0);
  // The next recording begins with nothing.
  trace.start();
  EXPECT_TRUE(trace.stop().empty());
}

TEST_F(Traces, SayWhyTheyCannotBeMade) {
  EXPECT_EQ(error_of([&] { trace.stop(); }), "cuda: expected a recording of kernels, got none");
  trace.start();
  EXPECT_EQ(error_of([&] { trace.start(); }),
            "cuda: expected no recording of kernels, got one that runs");
  trace.stop();
  simulated().answer = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  EXPECT_EQ(error_of([&] { trace.start(); }),
            "cuda: expected recording kernels to succeed, got CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
  EXPECT_TRUE(simulated().enabled.empty());
  simulated().answer = CUPTI_SUCCESS;
  trace.start();
  trace.stop();
}

}  // namespace
}  // namespace treadle::cuda
