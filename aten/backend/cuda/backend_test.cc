// The backend's logic against a simulated device: which calls wait, streams, events, pinned memory,
// copies between devices, errors and faults.
//
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>

#include "aten/backend/cuda/backend.h"
#include "aten/backend/cuda/device_guard.h"
#include "aten/backend/cuda/faults.h"
#include "aten/backend/cuda/testing_device.h"
#include "core/base/error.h"

namespace treadle::cuda {
namespace {

constexpr Device kZero{DeviceType::CUDA, 0}, kOne{DeviceType::CUDA, 1};

class Backends : public ::testing::Test {
 protected:
  Backends() {
    activate(0);
    if (!backend_of(DeviceType::CUDA)) {
      auto made = std::make_unique<CudaBackend>();
      treadle::register_backend(std::move(made));
    }
    backend = static_cast<CudaBackend*>(backend_of(DeviceType::CUDA));
    set_current_stream(kZero, 0);
    set_current_stream(kOne, 0);
  }
  MemoryPlace on(Device device, void* data) { return {data, 0, device}; }

  TestingDevice& device = TestingDevice::start();
  CudaBackend* backend;
};

template <class F>
std::string error_of(F f, ErrorKind kind) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind);
    return e.what();
  }
  return "nothing raised";
}

TEST_F(Backends, CountsAndNamesDevices) {
  EXPECT_EQ(backend->device_count(), 2);
  EXPECT_EQ(backend->device_name(1), "simulated 1");
  EXPECT_EQ(device_facts(0).architecture, 90);
  device.devices = 0;
  EXPECT_EQ(count_devices(), 0);
}

TEST_F(Backends, MemoryIsNotKeptWhereThatIsAskedFor) {
  EXPECT_TRUE(backend->facts().keeps_memory);
  setenv("TREADLE_CUDA_KEEP_MEMORY", "0", 1);
  EXPECT_FALSE(CudaBackend().facts().keeps_memory);
  setenv("TREADLE_CUDA_KEEP_MEMORY", "1", 1);
  EXPECT_TRUE(CudaBackend().facts().keeps_memory);
  unsetenv("TREADLE_CUDA_KEEP_MEMORY");
}

TEST_F(Backends, AGuardPutsTheDeviceBack) {
  {
    const DeviceGuard guard(1);
    EXPECT_EQ(device.active, 1);
  }
  EXPECT_EQ(device.active, 0);
  backend->deallocate(1, backend->allocate(1, 64), 64);
  EXPECT_EQ(device.active, 0);
}

TEST_F(Backends, CopiesFromPageableMemoryWait) {
  int here = 7, back = 0;
  void* there = backend->allocate(0, sizeof here);
  EXPECT_TRUE(backend->copy(on(kZero, there), on(kCPU, &here), sizeof here, true));
  EXPECT_TRUE(device.idle(nullptr));
  EXPECT_EQ(*static_cast<int*>(there), 7);
  EXPECT_TRUE(backend->copy(on(kCPU, &back), on(kZero, there), sizeof back, false));
  EXPECT_EQ(back, 7);
}

TEST_F(Backends, CopiesWithPinnedMemoryNeedNotWait) {
  auto* here = static_cast<int*>(backend->allocate_pinned(sizeof(int)));
  *here = 9;
  void* there = backend->allocate(0, sizeof(int));
  EXPECT_TRUE(backend->copy(on(kZero, there), on(kCPU, here), sizeof(int), true));
  EXPECT_FALSE(device.idle(nullptr));
  EXPECT_FALSE(backend->stream_idle(0, 0));
  backend->synchronize(0);
  EXPECT_EQ(*static_cast<int*>(there), 9);
  EXPECT_TRUE(backend->stream_idle(0, 0));
  // A requested wait is done.
  *here = 10;
  EXPECT_TRUE(backend->copy(on(kZero, there), on(kCPU, here), sizeof(int), false));
  EXPECT_EQ(*static_cast<int*>(there), 10);
  backend->deallocate_pinned(here, sizeof(int));
}

TEST_F(Backends, PinnedMemoryIsUsedAgainOnceItsCopiesAreDone) {
  void* first = backend->allocate_pinned(700);
  void* there = backend->allocate(0, 700);
  backend->copy(on(kZero, there), on(kCPU, first), 700, true);
  backend->deallocate_pinned(first, 700);
  void* second = backend->allocate_pinned(1000);
  EXPECT_NE(second, first);
  backend->synchronize(0);
  EXPECT_EQ(backend->allocate_pinned(600), first);
  EXPECT_EQ(device.log, (std::vector<std::string>{"host_alloc 1024", "host_alloc 1024"}));
}

TEST_F(Backends, CopiesBetweenDevicesKeepBothStreamsInOrder) {
  auto* from = static_cast<int*>(backend->allocate(0, sizeof(int)));
  auto* to = static_cast<int*>(backend->allocate(1, sizeof(int)));
  const uint64_t source = backend->create_stream(0, 0), target = backend->create_stream(1, 0);
  set_current_stream(kZero, source);
  set_current_stream(kOne, target);
  *from = 1;
  *to = 2;
  int seen = 0;
  // The old value is still to be read in the target's stream, before the copy; then the copied one.
  device.push(handle_of(target), [&] { return seen = *to, true; });
  backend->copy(on(kOne, to), on(kZero, from), sizeof(int), false);
  int after = 0;
  device.push(handle_of(target), [&] { return after = *to, true; });
  EXPECT_EQ(*to, 2);
  backend->synchronize_stream(0, source);
  backend->synchronize_stream(1, target);
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(after, 1);
  EXPECT_EQ(device.log.back(), "peer 0->1");
}

TEST_F(Backends, StreamsThatWereLetGoAreGivenAgain) {
  const uint64_t a = backend->create_stream(0, 0), b = backend->create_stream(0, 0);
  EXPECT_NE(a, b);
  backend->destroy_stream(0, a);
  EXPECT_NE(backend->create_stream(1, 0), a);
  EXPECT_EQ(backend->create_stream(0, 0), a);
  EXPECT_EQ(error_of([&] { backend->set_stream(1, b); }, ErrorKind::Value),
            str("cuda: expected a stream of cuda:1, got the number ", b));
}

TEST_F(Backends, EventsMarkStreams) {
  void* event = backend->create_event(0, true);
  EXPECT_TRUE(backend->event_complete(event));
  const uint64_t stream = backend->create_stream(0, 0);
  bool done = false;
  device.push(handle_of(stream), [&] { return done = true; });
  backend->record_event(0, event, stream);
  backend->wait_event(0, event, 0);
  EXPECT_FALSE(backend->event_complete(event));
  backend->synchronize_stream(0, 0);  // waits for the other stream's mark
  EXPECT_TRUE(done);
  EXPECT_TRUE(backend->event_complete(event));
  EXPECT_EQ(backend->elapsed_milliseconds(event, event), 2.5);
  backend->destroy_event(0, event);
}

TEST_F(Backends, ErrorsNameWhatWasDone) {
  device.next_error = cudaErrorInvalidValue;
  int here = 0;
  void* there = backend->allocate(0, sizeof here);
  EXPECT_EQ(error_of([&] { backend->copy(on(kZero, there), on(kCPU, &here), 4, false); },
                     ErrorKind::Runtime),
            "cuda: expected copying to a device to succeed, got cudaErrorInvalidValue (invalid "
            "argument)");
  device.limit = device.used + 100;
  EXPECT_EQ(error_of([&] { backend->allocate(0, 4096); }, ErrorKind::OutOfMemory),
            str("cuda: expected 4096 bytes of cuda:0, got none: 100 of its ", device.limit,
                " bytes are free"));
}

TEST_F(Backends, AFaultIsRaisedWhereTheHostWaitsAndOnce) {
  // Like kernels: the first one claims the record.
  FaultPlace place = faults().place(0);
  const auto leave = [&](int kind, long long value) {
    if (std::exchange(*place.claim, 1u)) return;
    *place.record = FaultRecord{kind, "embedding", {0, 5, value, 1}};
  };
  leave(kIndexOutOfRange, 7);
  leave(kIndexOutOfRange, 8);
  EXPECT_EQ(error_of([&] { backend->synchronize(0); }, ErrorKind::Index),
            "embedding: expected index in [0, 5), got index = 7");
  EXPECT_NO_THROW(backend->synchronize(0));
  leave(kIndexOutOfDim, -6);
  EXPECT_EQ(error_of([&] { backend->synchronize(0); }, ErrorKind::Index),
            "embedding: expected index in [0, 5) for dimension 1, got index = -6");
  leave(kZeroDivisor, 0);
  EXPECT_EQ(error_of([&] { backend->synchronize_stream(0, 0); }, ErrorKind::Runtime),
            "embedding: expected a non-zero divisor, got 0");
  void* event = backend->create_event(0, false);
  leave(kOtherFault, 0);
  EXPECT_EQ(error_of([&] { backend->synchronize_event(event); }, ErrorKind::Runtime),
            "embedding: expected arguments that it is defined for");
}

TEST_F(Backends, AFaultSaysWhichNumberIsWrong) {
  FaultPlace place = faults().place(0);
  const auto text_of = [&](FaultRecord record, ErrorKind kind) {
    *place.claim = 1;
    *place.record = record;
    return error_of([&] { backend->synchronize(0); }, kind);
  };
  const auto wrong = [&](Expectation what, double number) {
    return text_of({kWrongNumber, "poisson", {what, std::bit_cast<int64_t>(number), 0, 0}},
                   ErrorKind::Runtime);
  };
  EXPECT_EQ(wrong(kProbabilities, 1.5), "poisson: expected probabilities in [0, 1], got 1.5");
  EXPECT_EQ(wrong(kRates, -2), "poisson: expected finite rates >= 0, got -2.0");
  EXPECT_EQ(wrong(kCounts, -1), "poisson: expected counts in [0, 2^53], got -1.0");
  EXPECT_EQ(wrong(kWeights, -0.25), "poisson: expected finite weights >= 0, got -0.25");
  EXPECT_EQ(wrong(kPositiveSum, 0), "poisson: expected weights with a sum > 0, got a sum of 0.0");
  EXPECT_EQ(text_of({kFirstOffset, "embedding_bag", {0, 0, 3, 0}}, ErrorKind::Runtime),
            "embedding_bag: expected offsets that begin with 0, got 3");
  EXPECT_EQ(text_of({kPivotOutOfRange, "lu_unpack", {1, 4, 9, 0}}, ErrorKind::Value),
            "lu_unpack: expected pivots in [1, 4], got 9");
  EXPECT_EQ(text_of({kTooFewWeights, "multinomial", {3, 0, 2, 0}}, ErrorKind::Runtime),
            "multinomial: expected at least 3 weights > 0 to draw from without replacement, got 2");
  EXPECT_EQ(
      text_of({kOffsetOutOfOrder, "embedding_bag", {4, 6, 2, 0}}, ErrorKind::Runtime),
      "embedding_bag: expected offsets that do not fall and stay within 6 indices, got 2 after "
      "4");
}

}  // namespace
}  // namespace treadle::cuda
