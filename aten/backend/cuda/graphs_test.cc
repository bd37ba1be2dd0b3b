// Capture and replay against a simulated device: the order of work, the source and the lifetime of
// memory, and the random numbers of a replay.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/graphs.h"

#include <gtest/gtest.h>

#include "aten/backend/cuda/backend.h"
#include "aten/backend/cuda/device_guard.h"
#include "aten/backend/cuda/testing_device.h"
#include "core/base/error.h"
#include "core/memory/caching_allocator.h"

namespace treadle::cuda {
namespace {

constexpr Device kZero{DeviceType::CUDA, 0};

class Graphs : public ::testing::Test {
 protected:
  Graphs() {
    activate(0);
    if (!backend_of(DeviceType::CUDA)) treadle::register_backend(std::make_unique<CudaBackend>());
    backend = static_cast<CudaBackend*>(backend_of(DeviceType::CUDA));
    stream = backend->create_stream(0, 0);
    set_current_stream(kZero, stream);
    memory().empty_cache();
  }
  ~Graphs() override {
    set_current_stream(kZero, 0);
    backend->destroy_stream(0, stream);
  }
  CudaGraphs& graphs() { return *backend->graphs(); }
  CachingAllocator& memory() { return memory_of(kZero); }
  // Queues work that records its execution.
  void work(int number) {
    device.push(handle_of(stream), [this, number] { return done.push_back(number), true; });
  }
  template <class F>
  std::string error_of(F f) {
    try {
      f();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Runtime);
      return e.what();
    }
    return "nothing raised";
  }

  TestingDevice& device = TestingDevice::start();
  CudaBackend* backend;
  uint64_t stream;
  std::vector<int> done;
};

TEST_F(Graphs, AreDoneWhenTheyAreReplayed) {
  graphs().begin(0, stream, 0, CaptureErrors::Global);
  EXPECT_EQ(graphs().captured_with(0, stream), stream);
  EXPECT_EQ(graphs().captured_with(0, 0), std::nullopt);
  work(1);
  work(2);
  void* graph = graphs().end(0, stream);
  EXPECT_EQ(graphs().captured_with(0, stream), std::nullopt);
  backend->synchronize(0);
  EXPECT_EQ(done, std::vector<int>());
  graphs().replay(graph, stream);
  graphs().replay(graph, 0);
  EXPECT_EQ(done, std::vector<int>());
  backend->synchronize(0);
  EXPECT_EQ(done, (std::vector<int>{1, 2, 1, 2}));
  EXPECT_EQ(graphs().device_of(graph), 0);
  graphs().write(graph, "graph.dot");
  EXPECT_EQ(device.log.back(), "dot graph.dot");
  graphs().destroy(graph);
  EXPECT_EQ(device.graphs, 0);
}

TEST_F(Graphs, MemoryIsAskedForWithoutEndingTheCapture) {
  graphs().begin(0, stream, 0, CaptureErrors::Global);
  void* data = memory().allocate(1000, stream);
  void* pinned = backend->allocate_pinned(5000);
  EXPECT_EQ(device.capture_mode, cudaStreamCaptureModeGlobal);
  void* graph = graphs().end(0, stream);
  backend->deallocate_pinned(pinned, 5000);
  memory().deallocate(data);
  graphs().destroy(graph);
}

TEST_F(Graphs, MemoryStaysForAsLongAsAGraphNeedsIt) {
  memory().deallocate(memory().allocate(1000, stream));  // cached for others
  const int64_t before = memory().statistics().segment.all.current;
  const uint64_t pool = graphs().begin(0, stream, 0, CaptureErrors::Global);
  void* inside = memory().allocate(1000, stream);
  memory().deallocate(inside);
  // Within the capture it serves again.
  EXPECT_EQ(memory().allocate(900, stream), inside);
  memory().deallocate(inside);
  void* first = graphs().end(0, stream);
  EXPECT_EQ(memory().statistics().segment.all.current, before + 1);
  // After it, no request of others gets it.
  void* outside = memory().allocate(1000, stream);
  EXPECT_NE(outside, inside);
  memory().deallocate(outside);
  memory().empty_cache();
  EXPECT_EQ(memory().statistics().segment.all.current, 1);
  // A second graph shares the pool, and its memory.
  EXPECT_EQ(graphs().begin(0, stream, pool, CaptureErrors::Global), pool);
  EXPECT_EQ(memory().allocate(1000, stream), inside);
  memory().deallocate(inside);
  void* second = graphs().end(0, stream);
  graphs().destroy(first);
  memory().empty_cache();
  EXPECT_EQ(memory().statistics().segment.all.current, 1);
  graphs().destroy(second);
  memory().empty_cache();
  EXPECT_EQ(memory().statistics().segment.all.current, 0);
}

TEST_F(Graphs, AReplayDrawsTheNumbersThatComeNext) {
  const Generator generator = make_generator(kZero);
  generator->set_position({5, 100});
  std::vector<std::pair<uint64_t, uint64_t>> drawn;
  // Like a kernel that reads it when it runs.
  const auto draw = [&](uint64_t blocks) {
    const RandomStart start = reserve_random(0, generator, blocks);
    device.push(handle_of(stream), [&drawn, start] {
      GeneratorImpl::Position at = start.at;
      if (start.base) at = {start.base->seed, start.base->offset + at.offset};
      return drawn.emplace_back(at.seed, at.offset), true;
    });
  };
  draw(3);
  graphs().begin(0, stream, 0, CaptureErrors::Global);
  draw(10);
  draw(7);
  EXPECT_EQ(generator->position().offset, 103u);
  void* graph = graphs().end(0, stream);
  graphs().replay(graph, stream);
  graphs().replay(graph, stream);
  draw(1);
  generator->set_position({6, 0});
  graphs().replay(graph, stream);
  backend->synchronize(0);
  const std::vector<std::pair<uint64_t, uint64_t>> expected = {
      {5, 100}, {5, 103}, {5, 113}, {5, 120}, {5, 130}, {5, 137}, {6, 0}, {6, 10}};
  EXPECT_EQ(drawn, expected);
  EXPECT_EQ(generator->position().offset, 17u);
  graphs().destroy(graph);
}

TEST_F(Graphs, AStreamThatJoinsHasThePoolAndNewNumbers) {
  const uint64_t side = backend->create_stream(0, 0), other = backend->create_stream(0, 0);
  void* const fork = backend->create_event(0, false);
  void* const join = backend->create_event(0, false);
  const Generator generator = make_generator(kZero);
  generator->set_position({5, 0});
  std::vector<uint64_t> drawn;
  const auto draw_in = [&](uint64_t where, uint64_t blocks) {
    set_current_stream(kZero, where);
    const RandomStart start = reserve_random(0, generator, blocks);
    device.push(handle_of(where), [&drawn, start] {
      drawn.push_back(start.at.offset + (start.base ? start.base->offset : 0));
      return true;
    });
    set_current_stream(kZero, stream);
  };
  // Blocks of before, which are no part of the pool.
  void* const before = memory().allocate(1000, side);
  memory().deallocate(before);
  const uint64_t pool = graphs().begin(0, stream, 0, CaptureErrors::Global);
  EXPECT_EQ(graphs().captured_with(0, side), std::nullopt);
  draw_in(stream, 10);
  backend->record_event(0, fork, stream);
  backend->wait_event(0, fork, side);
  EXPECT_EQ(graphs().captured_with(0, side), stream);
  EXPECT_EQ(graphs().captured_with(0, other), std::nullopt);
  EXPECT_EQ(graphs().captured_with(1, side), std::nullopt);
  draw_in(side, 7);
  void* const inside = memory().allocate(1000, side);
  EXPECT_NE(inside, before);
  memory().deallocate(inside);
  void* const apart = memory().allocate(1000, other);
  memory().deallocate(apart);
  backend->record_event(0, join, side);
  backend->wait_event(0, join, stream);
  draw_in(stream, 3);
  void* graph = graphs().end(0, stream);
  EXPECT_EQ(graphs().captured_with(0, side), std::nullopt);
  EXPECT_EQ(generator->position().offset, 0u);
  std::map<const void*, uint64_t> pools;  // by the first value of each segment
  for (const SegmentSnapshot& segment : memory().snapshot()) pools[segment.address] = segment.pool;
  EXPECT_EQ(pools.at(inside), pool);
  EXPECT_EQ(pools.at(apart), 0u);
  graphs().replay(graph, stream);
  graphs().replay(graph, stream);
  backend->synchronize(0);
  EXPECT_EQ(drawn, (std::vector<uint64_t>{0, 10, 17, 20, 30, 37}));
  EXPECT_EQ(memory().allocate(1000, side), before);
  memory().deallocate(before);
  graphs().destroy(graph);
}

TEST_F(Graphs, ACaptureThatWaitsIsAnErrorAndLeavesNothing) {
  graphs().begin(0, stream, 0, CaptureErrors::Global);
  memory().allocate(1000, stream);
  EXPECT_EQ(error_of([&] { backend->synchronize_stream(0, stream); }),
            "cuda: expected waiting for a stream to succeed, got "
            "cudaErrorStreamCaptureUnsupported (operation not permitted when stream is capturing)");
  EXPECT_EQ(error_of([&] { graphs().end(0, stream); }),
            "cuda: expected ending a capture to succeed, got cudaErrorStreamCaptureInvalidated "
            "(operation failed due to a previous error during capture)");
  EXPECT_EQ(graphs().captured_with(0, stream), std::nullopt);
  EXPECT_EQ(device.graphs, 0);
  // The stream can be captured again.
  graphs().begin(0, stream, 0, CaptureErrors::Relaxed);
  graphs().destroy(graphs().end(0, stream));
}

TEST_F(Graphs, SayWhatCannotBeCaptured) {
  EXPECT_EQ(error_of([&] { graphs().begin(0, 0, 0, CaptureErrors::Global); }),
            "cuda: expected a stream other than the default one, which cannot be captured, got "
            "the default stream of cuda:0");
  EXPECT_EQ(error_of([&] { graphs().end(0, stream); }),
            "cuda: expected a stream of cuda:0 that is captured, got one that is not");
  EXPECT_EQ(error_of([&] { graphs().begin(0, stream, 999, CaptureErrors::Global); }),
            "expected a private pool of cuda:0, got 999");
}

}  // namespace
}  // namespace treadle::cuda
