// The engine "gloo" with a thread for each rank: results at the sizes where another way begins,
// ends by timeout and abort, and strangers at the ports. With --config=asan memory is checked, too.
//
// SPDX-License-Identifier: Apache-2.0

#include "distributed/gloo/engine.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "distributed/group.h"

namespace treadle::distributed {
namespace {

class Table {
 public:
  explicit Table(std::function<void()> before_get) : before_get_(std::move(before_get)) {}
  RendezvousStore store(std::chrono::milliseconds timeout) {
    return {[this](const std::string& key, const std::vector<char>& value) {
              const std::lock_guard lock(mutex_);
              values_[key] = value;
              changed_.notify_all();
            },
            [this, timeout](const std::string& key) {
              if (before_get_) before_get_();
              std::unique_lock lock(mutex_);
              if (!changed_.wait_for(lock, timeout, [&] { return values_.contains(key); }))
                throw std::runtime_error("late");
              return values_[key];
            }};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<char>> values_;
  std::function<void()> before_get_;
};

// Runs a function in each rank; the texts of what they throw. `before_get` is called before a rank
// asks the store where another one listens.
std::vector<std::string> together(int size, std::chrono::milliseconds timeout,
                                  const std::function<void(GlooEngine&)>& function,
                                  std::function<void()> before_get = {}) {
  // As in Python: a message to a rank that has ended is an error, not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  Table table(std::move(before_get));
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        GlooEngine engine(rank, size, table.store(timeout), {"127.0.0.1", ""}, timeout);
        function(engine);
        engine.flush(timeout);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = std::string("error: ") + error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// Where this process listens.
std::set<int> listening_ports() {
  std::set<std::string> sockets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    sockets.insert(std::filesystem::read_symlink(entry.path(), error).string());
  }
  std::set<int> found;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::string number, local, remote, state, skipped, inode;
      fields >> number >> local >> remote >> state;
      for (int i = 0; i < 6; ++i) fields >> (i == 5 ? inode : skipped);
      if (state == "0A" && sockets.contains("socket:[" + inode + "]"))
        found.insert(static_cast<int>(std::stoul(local.substr(local.rfind(':') + 1), nullptr, 16)));
    }
  }
  return found;
}

using Values = std::vector<int32_t>;

Span span(Values& values, size_t begin, size_t count) {
  return {reinterpret_cast<char*>(values.data() + begin), count * sizeof(int32_t)};
}
Span span(Values& values) { return span(values, 0, values.size()); }

Call call_of(Function function, uint64_t number, int root = 0) {
  Call call;
  call.function = function;
  call.dtype = ScalarType::Int32;
  call.number = number;
  call.root = root;
  call.timeout = std::chrono::minutes(1);
  return call;
}

std::vector<Span> parts(Values& values, int size) {
  std::vector<Span> found;
  const size_t count = values.size() / static_cast<size_t>(size);
  for (size_t i = 0; i < static_cast<size_t>(size); ++i)
    found.push_back(span(values, i * count, count));
  return found;
}

// The i-th value of a rank.
int32_t value(int rank, size_t i) { return static_cast<int32_t>(i % 1000) + 1000 * (rank + 1); }

void check_all(GlooEngine& engine, size_t count) {
  const int size = engine.size, rank = engine.rank;
  const auto n = static_cast<size_t>(size);
  uint64_t number = count * 16;
  const auto filled = [&](size_t c) {
    Values made(c);
    for (size_t i = 0; i < c; ++i) made[i] = value(rank, i);
    return made;
  };
  const auto sum = [&](size_t i) {
    int32_t found = 0;
    for (int r = 0; r < size; ++r) found += value(r, i);
    return found;
  };
  for (const Function function : {Function::AllReduce, Function::Reduce, Function::Broadcast}) {
    Values one = filled(count);
    const int root = function == Function::AllReduce ? 0 : size - 1;
    Call call = call_of(function, ++number, root);
    call.inputs = call.outputs = {span(one)};
    engine.run(call);
    for (size_t i = 0; i < count; ++i) {
      const bool is_same = function == Function::Reduce && rank != root;
      const int32_t expected = function == Function::Broadcast ? value(root, i)
                               : is_same                       ? value(rank, i)
                                                               : sum(i);
      ASSERT_EQ(one[i], expected) << "element " << i << " of " << count;
    }
  }
  {
    Values whole = filled(count * n), part(count);
    Call call = call_of(Function::ReduceScatter, ++number);
    call.inputs = parts(whole, size);
    call.outputs = {span(part)};
    engine.run(call);
    for (size_t i = 0; i < count; ++i)
      ASSERT_EQ(part[i], sum(static_cast<size_t>(rank) * count + i));
  }
  for (const bool in_place : {false, true}) {
    Values given = filled(count * n), apart(count * n);
    Values& taken = in_place ? given : apart;
    Call call = call_of(Function::AllToAll, ++number);
    call.inputs = parts(given, size);
    call.outputs = parts(taken, size);
    engine.run(call);
    for (size_t r = 0; r < n; ++r)
      for (size_t i = 0; i < count; ++i)
        ASSERT_EQ(taken[r * count + i],
                  value(static_cast<int>(r), static_cast<size_t>(rank) * count + i));
  }
  Values mine = filled(count), all(count * n);
  Call call = call_of(Function::AllGather, ++number);
  call.inputs = {span(mine)};
  call.outputs = parts(all, size);
  engine.run(call);
  for (size_t r = 0; r < n; ++r)
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(all[r * count + i], value(static_cast<int>(r), i));
  engine.run(call_of(Function::Barrier, ++number));
}

TEST(GlooEngine, EveryFunctionAtTheSizesWhereAnotherWayBegins) {
  constexpr size_t kMiB = (1 << 20) / sizeof(int32_t);
  for (const int size : {1, 2, 3}) {
    const auto errors = together(size, std::chrono::seconds(60), [](GlooEngine& engine) {
      for (const size_t count :
           {size_t{0}, size_t{1}, size_t{2}, size_t{4096}, size_t{4097}, size_t{16384},
            size_t{16385}, 2 * kMiB, 3 * kMiB + 1, 6 * kMiB + 16387})
        check_all(engine, count);
      EXPECT_TRUE(listening_ports().empty());  // to nobody, once the group is made
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "");
  }
}

// Messages of all sizes come whole, while the rank that sends them runs ahead of the others.
TEST(GlooEngine, SmallMessagesGoRoundTheRing) {
  for (const int size : {2, 3}) {
    const auto errors = together(size, std::chrono::seconds(60), [](GlooEngine& engine) {
      std::mt19937 random(1);  // the same in all ranks
      for (int32_t number = 1; number <= 1200; ++number) {
        const size_t count = 1 + random() % (number % 3 == 0 ? 16384 : 64);
        const int root = number / 100 % engine.size;
        Values one(count, engine.rank == root ? number : 0);
        Call call = call_of(Function::Broadcast, static_cast<uint64_t>(number), root);
        call.inputs = call.outputs = {span(one)};
        engine.run(call);
        ASSERT_EQ(one, Values(count, number));
      }
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "");
  }
}

// The rank that sends waits where nobody takes its messages, for as long as the call may take.
TEST(GlooEngine, AFullRingEndsByTimeout) {
  std::atomic<bool> is_over = false;
  const auto errors = together(2, std::chrono::seconds(60), [&](GlooEngine& engine) {
    if (engine.rank == 1) {
      while (!is_over) std::this_thread::sleep_for(milliseconds(5));
      return;
    }
    Values one(16384);
    Failure::Kind kind = Failure::Kind::Backend;
    for (uint64_t number = 1; number < 10 && kind == Failure::Kind::Backend; ++number) {
      Call call = call_of(Function::Broadcast, number);
      call.inputs = call.outputs = {span(one)};
      call.timeout = milliseconds(100);
      try {
        engine.run(call);
      } catch (const Failure& failure) {
        kind = failure.kind;
      }
    }
    EXPECT_EQ(kind, Failure::Kind::Timeout);
    is_over = true;
  });
  EXPECT_EQ(errors[0], "");
}

// A rank that does not come is an error of the others in time; so is an abort.
TEST(GlooEngine, EndsByTimeoutAndByAbort) {
  for (const size_t count : {size_t{1}, size_t{1} << 20}) {
    for (const bool aborts : {false, true}) {
      std::atomic<bool> is_over = false;
      const auto errors = together(2, std::chrono::seconds(60), [&](GlooEngine& engine) {
        if (engine.rank == 1) {
          while (!is_over) std::this_thread::sleep_for(milliseconds(5));
          return;
        }
        Values one(count);
        Call call = call_of(Function::AllReduce, 1);
        call.inputs = call.outputs = {span(one)};
        if (!aborts) call.timeout = milliseconds(100);
        std::thread other([&] {
          std::this_thread::sleep_for(milliseconds(50));
          if (aborts) engine.abort();
        });
        try {
          engine.run(call);
          ADD_FAILURE() << "expected a failure";
        } catch (const Failure& failure) {
          EXPECT_TRUE(aborts || failure.kind == Failure::Kind::Timeout) << failure.what();
        }
        other.join();
        is_over = true;
      });
      EXPECT_EQ(errors[0], "");
    }
  }
}

// ---- Strangers ----

// A connection to a port, over which random bytes were sent.
class Stranger {
 public:
  Stranger(int port, size_t bytes, std::mt19937& random)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(static_cast<uint16_t>(port));
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::vector<char> data(bytes);
    for (char& each : data) each = static_cast<char>(random());
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&place), sizeof(place)) == 0)
      sent = std::max<ssize_t>(
          0, ::send(socket_, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  ~Stranger() { ::close(socket_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  ssize_t sent = 0;

 private:
  const int socket_;
};

// While a group is made, others connect to every port that listens, and send random bytes. A group
// in which a stranger took a connection is an error of its ranks; one that is made is right.
TEST(GlooEngine, StrangersAtThePorts) {
  std::mt19937 random(1);
  std::mutex mutex;
  int connections = 0, made = 0, at_ease = 0;
  int64_t bytes = 0;
  constexpr int kTurns = 20, kStrikes = 14;
  for (int turn = 0; turn < kTurns; ++turn) {
    int gets = 0;
    std::vector<std::unique_ptr<Stranger>> strangers;
    const auto strike = [&] {
      const std::lock_guard lock(mutex);
      // In each turn at another time; in the last ones not at all.
      if (gets++ != turn % 8 || turn >= kStrikes) return;
      for (const int port : listening_ports()) {
        const size_t many = turn % 3 == 0 ? 0 : 10'000 * static_cast<size_t>(turn + 1);
        strangers.push_back(std::make_unique<Stranger>(port, many, random));
        ++connections;
        bytes += strangers.back()->sent;
      }
      if (turn % 2 == 0) strangers.clear();
    };
    std::atomic<int> works = 0;
    const auto errors = together(
        2, milliseconds(300),
        [&](GlooEngine& engine) {
          check_all(engine, 3);
          check_all(engine, 20'000);
          ++works;
        },
        strike);
    EXPECT_EQ(works == 2, errors[0].empty() && errors[1].empty()) << errors[0] << errors[1];
    made += works == 2 ? 1 : 0;
    at_ease += works == 2 && turn >= kStrikes ? 1 : 0;
  }
  EXPECT_GE(connections, 4);
  EXPECT_EQ(at_ease, kTurns - kStrikes);
  std::cout << connections << " connections, " << bytes << " bytes, " << made << " of " << kTurns
            << " groups made\n";
}

// The status of a child of a fork in which the function returns; it is killed if that takes long.
int status_of_child(const std::function<bool()>& function) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(function() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

std::shared_ptr<Group> group_of_one() {
  Table table({});
  constexpr std::chrono::milliseconds kSoon(20'000);
  return make_of_this_process<Group>(
      make_of_this_process<GlooEngine>(0, 1, table.store(kSoon), Interface{"127.0.0.1", ""}, kSoon),
      std::vector<int>{0}, "0");
}

// A child has none of the threads that serve its parent's groups: its own groups have others.
TEST(GlooEngine, ChildrenConnectWhileTheParentHasAGroup) {
  const std::shared_ptr<Group> kept = group_of_one();
  EXPECT_EQ(status_of_child([] {
              const auto errors = together(3, std::chrono::milliseconds(20'000),
                                           [](GlooEngine& engine) { check_all(engine, 3); });
              return errors == std::vector<std::string>(3) && !HasFailure();
            }),
            0);
}

TEST(GlooEngine, ChildrenLeaveTheGroupsOfTheParentAlone) {
  std::shared_ptr<Group> group = group_of_one();
  std::shared_ptr<Work> work = group->run(call_of(Function::Barrier, 0), {}, true);
  work->wait({});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // its thread waits for the next call
  EXPECT_EQ(status_of_child([&] {
              work.reset();
              group.reset();
              return true;
            }),
            0);
}

}  // namespace
}  // namespace treadle::distributed
