// SPDX-License-Identifier: Apache-2.0
#include "aten/fusion/compiled.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "core/base/fork_safe_mutex.h"

namespace treadle::fusion {
namespace {

// A compiler takes seconds, so a source has to be used more than now and then.
constexpr int kUsesBeforeWanted = 4;
// Programs that make ever new sources gain nothing by them.
constexpr size_t kMostSources = 4096;

struct Source {
  void* function = nullptr;
  int uses = 0;
  bool has_failed = false;
};

struct Registry {
  ForkSafeMutex mutex;
  std::unordered_map<std::string, Source> sources;
  std::deque<std::string> wanted;
  int64_t open = 0;  // wanted, and not given back
};

// Never destroyed: the compiler's thread may outlive the objects of this file.
Registry& registry() {
  static Registry& all = *new Registry;
  return all;
}

std::atomic<bool> compiling{false};

}  // namespace

bool is_compiling() noexcept { return compiling.load(std::memory_order_relaxed); }
void set_compiling(bool on) noexcept { compiling.store(on, std::memory_order_relaxed); }

void* find_compiled(const std::string& source) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  auto found = all.sources.find(source);
  if (found == all.sources.end()) {
    if (all.sources.size() == kMostSources) return nullptr;
    found = all.sources.emplace(source, Source{}).first;
  }
  Source& known = found->second;
  if (known.function == nullptr && ++known.uses == kUsesBeforeWanted) {
    all.wanted.push_back(source);
    ++all.open;
  }
  return known.function;
}

std::vector<std::string> take_wanted(size_t most) {
  Registry& all = registry();
  std::vector<std::string> taken;
  const std::lock_guard lock(all.mutex);
  while (taken.size() < most && !all.wanted.empty()) {
    taken.push_back(std::move(all.wanted.front()));
    all.wanted.pop_front();
  }
  return taken;
}

void set_compiled(const std::string& source, void* function) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  Source& known = all.sources[source];
  known.function = function;
  known.has_failed = function == nullptr;
  --all.open;
}

void want_again() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const auto& [text, source] : all.sources) {
    if (source.uses < kUsesBeforeWanted || source.function != nullptr || source.has_failed ||
        std::find(all.wanted.begin(), all.wanted.end(), text) != all.wanted.end()) {
      continue;
    }
    all.wanted.push_back(text);
  }
  all.open = static_cast<int64_t>(all.wanted.size());
}

CompiledCount count_compiled() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  CompiledCount count{0, all.open, 0};
  for (const auto& [text, source] : all.sources) {
    count.ready += source.function != nullptr;
    count.failed += source.has_failed;
  }
  return count;
}

}  // namespace treadle::fusion
