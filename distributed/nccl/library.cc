// SPDX-License-Identifier: Apache-2.0
#include "distributed/nccl/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

namespace treadle::distributed {
namespace {

constexpr const char* kName = "libnccl.so.2";

// Where the system looks; where a package of NCCL is installed, beside this one; in the toolkit.
std::vector<std::string> folders() {
  std::vector<std::string> found = {""};
  Dl_info here{};
  if (dladdr(reinterpret_cast<void*>(&folders), &here) != 0 && here.dli_fname != nullptr) {
    // site-packages/treadle/distributed/_nccl.so
    std::string path = here.dli_fname;
    for (int i = 0; i < 3 && !path.empty(); ++i) {
      const size_t slash = path.rfind('/');
      path.resize(slash == std::string::npos ? 0 : slash);
    }
    if (!path.empty()) found.push_back(path + "/nvidia/nccl/lib/");
  }
  const char* const home = std::getenv("CUDA_HOME");
  found.push_back(std::string(home != nullptr && *home ? home : "/usr/local/cuda") + "/lib64/");
  return found;
}

// The reason why there is none in `why`.
void* find(std::string& why) {
  for (const std::string& folder : folders()) {
    if (void* library = dlopen((folder + kName).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    why += (why.empty() ? "" : ", ") + (folder.empty() ? "the system's folders" : folder);
  }
  return nullptr;
}

std::string text_of(int version) {
  // 2.8.4 is 2804, 2.14.3 is 21403.
  const int unit = version < 10000 ? 1000 : 10000;
  return std::to_string(version / unit) + "." + std::to_string(version % unit / 100) + "." +
         std::to_string(version % 100);
}

Nccl load() {
  std::string where;
  void* const library = find(where);
  if (library == nullptr)
    throw Failure(Failure::Kind::Backend,
                  std::string("expected NCCL (") + kName + ") in " + where + ", got none");
  Nccl made{};
  const auto take = [&](auto& function, const char* name) {
    void* const address = dlsym(library, name);
    if (address == nullptr) {
      int version = 0;
      if (made.GetVersion != nullptr) made.GetVersion(&version);
      throw Failure(Failure::Kind::Backend, std::string("expected NCCL with the function ") + name +
                                                ", got release " + text_of(version) +
                                                " without it; it has to be 2.14 or later");
    }
    function = reinterpret_cast<std::decay_t<decltype(function)>>(address);
  };
  take(made.GetVersion, "ncclGetVersion");
  take(made.GetErrorString, "ncclGetErrorString");
  take(made.GetUniqueId, "ncclGetUniqueId");
  take(made.CommInitRankConfig, "ncclCommInitRankConfig");
  take(made.CommGetAsyncError, "ncclCommGetAsyncError");
  take(made.CommAbort, "ncclCommAbort");
  take(made.GroupStart, "ncclGroupStart");
  take(made.GroupEnd, "ncclGroupEnd");
  take(made.AllReduce, "ncclAllReduce");
  take(made.Reduce, "ncclReduce");
  take(made.Broadcast, "ncclBroadcast");
  take(made.AllGather, "ncclAllGather");
  take(made.ReduceScatter, "ncclReduceScatter");
  take(made.Send, "ncclSend");
  take(made.Recv, "ncclRecv");
  take(made.RedOpCreatePreMulSum, "ncclRedOpCreatePreMulSum");
  take(made.RedOpDestroy, "ncclRedOpDestroy");
  return made;
}

}  // namespace

const Nccl& nccl() {
  static const Nccl loaded = load();  // again where it threw
  return loaded;
}

std::string nccl_version() {
  int version = 0;
  nccl_check(nccl().GetVersion(&version), "ncclGetVersion");
  return text_of(version);
}

void nccl_check(NcclResult result, const char* function) {
  if (result == NcclResult::Success || result == NcclResult::InProgress) return;
  throw Failure(Failure::Kind::Backend, std::string("expected success of ") + function + ", got " +
                                            nccl().GetErrorString(result));
}

}  // namespace treadle::distributed
