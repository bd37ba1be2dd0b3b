// Parallel loops: every chunk once, the same bits at any thread count, exceptions, nesting, forks.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/threads/parallel.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "core/base/layers.h"

namespace treadle {
namespace {

class Threads {
 public:
  explicit Threads(int n) : saved_(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(saved_); }

 private:
  int saved_;
};

TEST(Parallel, RunsEveryChunkOnce) {
  for (int threads : {1, 2, 3, 8}) {
    const Threads scope(threads);
    for (int64_t chunks : {0, 1, 2, 3, 7, 100}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(chunks));
      parallel_chunks(chunks, [&](int64_t c) { ++runs[static_cast<size_t>(c)]; });
      for (const auto& r : runs) EXPECT_EQ(r, 1);
    }
  }
}

float sum_of(const std::vector<float>& v) {
  constexpr int64_t kGrain = 1000;
  std::vector<float> partial((v.size() + kGrain - 1) / kGrain);
  const int64_t size = static_cast<int64_t>(v.size());
  parallel_for(size, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      partial[static_cast<size_t>(begin / piece_length(size, kGrain))] += v[static_cast<size_t>(i)];
  });
  return std::accumulate(partial.begin(), partial.end(), 0.0f);
}

TEST(Parallel, MakesFewPiecesEqual) {
  EXPECT_EQ(piece_length(99372, 32768), 24896);  // 4 pieces, each of whole lines
  EXPECT_EQ(piece_length(6, 1), 1);
  EXPECT_EQ(piece_length(9, 3), 3);     // 3 pieces become 4, as far as 9 allows it
  EXPECT_EQ(piece_length(33, 32), 32);  // begins at a multiple of 32
  EXPECT_EQ(piece_length(int64_t{1} << 40, 32768), 32768);
  for (int64_t n : {2, 5, 63, 64, 65, 1000, 99372, 3000000}) {
    for (int64_t grain : {1, 3, 7, 16, 48, 64, 1000, 32768}) {
      const int64_t piece = piece_length(n, grain);
      EXPECT_GE(piece, 1);
      EXPECT_LE(piece, grain);
      EXPECT_EQ(piece % std::min<int64_t>(64, grain & -grain), 0);
    }
  }
}

TEST(Parallel, GivesTheSameBitsAtAnyThreadCount) {
  std::vector<float> v(123457);
  for (size_t i = 0; i < v.size(); ++i) v[i] = 1.0f / static_cast<float>(i + 1);
  const float one = [&] {
    const Threads scope(1);
    return sum_of(v);
  }();
  for (int threads : {2, 3, 8}) {
    const Threads scope(threads);
    EXPECT_EQ(sum_of(v), one);
  }
}

TEST(Parallel, RethrowsTheFirstException) {
  for (int threads : {1, 2, 3, 8}) {
    const Threads scope(threads);
    for (int round = 0; round < 20; ++round) {
      try {
        parallel_chunks(64, [](int64_t c) { check<ErrorKind::Index>(c < 5, "chunk ", c); });
        FAIL();
      } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "chunk 5");
      }
    }
  }
}

TEST(Parallel, NestedLoopsRunInline) {
  const Threads scope(3);
  std::atomic<int> total{0};
  parallel_chunks(6, [&](int64_t) {
    EXPECT_TRUE(in_parallel_region());
    const int me = omp_get_thread_num();
    parallel_chunks(5, [&](int64_t) {
      EXPECT_EQ(omp_get_thread_num(), me);
      ++total;
    });
  });
  EXPECT_EQ(total, 30);
  EXPECT_FALSE(in_parallel_region());
}

TEST(Parallel, CarriesModesToItsThreads) {
  const Threads scope(4);
  const NoGrad no_grad;
  const ExcludeLayers exclude(Layer::Autograd);
  std::atomic<int> wrong{0};
  parallel_chunks(16, [&](int64_t) { wrong += grad_enabled() || layer_state().excluded == 0; });
  EXPECT_EQ(wrong, 0);
}

TEST(Parallel, SingleThreadedLimitsOtherLibraries) {
  const int before = omp_get_max_threads();
  single_threaded([] { EXPECT_EQ(omp_get_max_threads(), 1); });
  EXPECT_EQ(omp_get_max_threads(), before);
  EXPECT_THROW(single_threaded([] { fail<ErrorKind::Value>("inside"); }), Error);
  EXPECT_EQ(omp_get_max_threads(), before);
}

TEST(Parallel, ThreadCountIsChecked) {
  EXPECT_THROW(set_num_threads(0), Error);
  EXPECT_THROW(set_num_threads(-3), Error);
  EXPECT_GE(num_threads(), 1);
}

TEST(Parallel, AForkedChildRunsAlone) {
  const Threads scope(3);
  parallel_chunks(8, [](int64_t) {});  // starts the pool
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);  // a child that waits for threads that are not there ends here
    int ran = 0;
    parallel_chunks(8, [&](int64_t) { ++ran; });
    _exit(ran == 8 && num_threads() == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace treadle
