// SPDX-License-Identifier: Apache-2.0
#include "distributed/mpi/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <variant>

#include "distributed/mpi/engine.h"

namespace treadle::distributed {
namespace {

constexpr const char* kOpenMpi[] = {"libmpi.so.40"};
constexpr const char* kMpich[] = {"libmpich.so.12", "libmpi.so.12"};

template <size_t n>
void* opened(const char* const (&names)[n], int flags) {
  for (const char* name : names)
    if (void* library = dlopen(name, flags | RTLD_NOW | RTLD_GLOBAL)) return library;
  return nullptr;
}

// The one that is loaded; or that of the launcher; or the first that is installed.
void* find() {
  if (void* library = opened(kOpenMpi, RTLD_NOLOAD)) return library;
  if (void* library = opened(kMpich, RTLD_NOLOAD)) return library;
  const bool by_open_mpi = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
  const bool by_mpich = std::getenv("PMI_SIZE") != nullptr || std::getenv("PMI_RANK") != nullptr;
  if (by_mpich && !by_open_mpi) return opened(kMpich, 0);
  if (void* library = opened(kOpenMpi, 0)) return library;
  return by_open_mpi ? nullptr : opened(kMpich, 0);
}

void* library() {
  static void* const found = find();
  return found;
}

using OpenMpiWorld = std::unique_ptr<MpiWorld<OpenMpi>>;
using MpichWorld = std::unique_ptr<MpiWorld<Mpich>>;
using World = std::variant<std::monostate, OpenMpiWorld, MpichWorld>;

std::mutex start_mutex;

// Lives as long as the process: groups refer to it.
World& world() {
  static World& made = *new World;
  return made;
}

}  // namespace

bool mpi_is_there() { return library() != nullptr; }

MpiPlace mpi_start() {
  const std::lock_guard lock(start_mutex);
  if (library() == nullptr)
    throw Failure(
        Failure::Kind::Backend,
        "expected an MPI library (libmpi.so.40, libmpich.so.12 or libmpi.so.12), got none");
  if (std::holds_alternative<std::monostate>(world())) {
    if (dlsym(library(), "ompi_mpi_comm_world") != nullptr)
      world() = std::make_unique<MpiWorld<OpenMpi>>(library());
    else
      world() = std::make_unique<MpiWorld<Mpich>>(library());
  }
  return std::visit(
      [](auto& made) -> MpiPlace {
        if constexpr (std::is_same_v<std::decay_t<decltype(made)>, std::monostate>)
          return {0, 1};
        else if (made->is_over())
          throw Failure(Failure::Kind::Backend, "expected MPI before its end, got MPI_Finalized");
        else
          return {made->rank, made->size};
      },
      world());
}

void mpi_finish() {
  std::visit(
      [](auto& made) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(made)>, std::monostate>) made->finish();
      },
      world());
}

std::shared_ptr<Engine> mpi_connect(const std::vector<int>& members, const std::string& name) {
  mpi_start();
  const auto connect = [&]<class Abi>(MpiWorld<Abi>& all) -> std::shared_ptr<Engine> {
    auto& mpi = all.mpi;
    typename Mpi<Abi>::Group whole{}, part{};
    typename Mpi<Abi>::Comm made{};
    const int size = static_cast<int>(members.size());
    uint64_t tag = 0;
    for (const char c : name) tag = mixed(tag, static_cast<uint64_t>(c));
    all.check(mpi.comm_group(mpi.world, &whole), "MPI_Comm_group");
    all.check(mpi.group_incl(whole, size, members.data(), &part), "MPI_Group_incl");
    all.check(mpi.comm_create_group(mpi.world, part, static_cast<int>(tag % 32768), &made),
              "MPI_Comm_create_group");
    mpi.group_free(&part);
    mpi.group_free(&whole);
    int rank = 0;
    all.check(mpi.comm_rank(made, &rank), "MPI_Comm_rank");
    return make_of_this_process<MpiEngine<Abi>>(all, made, rank, size);
  };
  return std::visit(
      [&](auto& made) -> std::shared_ptr<Engine> {
        if constexpr (std::is_same_v<std::decay_t<decltype(made)>, std::monostate>)
          return nullptr;
        else
          return connect(*made);
      },
      world());
}

}  // namespace treadle::distributed
