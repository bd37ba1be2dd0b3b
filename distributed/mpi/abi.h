// The two binary interfaces of MPI. The functions have the same names; handles, constants and the
// status differ. MPICH's is also that of Intel MPI, MVAPICH and others.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "distributed/call.h"

namespace treadle::distributed {

inline void* symbol_of(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr)
    throw Failure(Failure::Kind::Backend,
                  std::string("expected an MPI library with ") + name + ", got one without");
  return found;
}

// Handles are addresses, those of constants the addresses of the library's variables.
struct OpenMpi {
  using Communicator = void*;
  using Datatype = void*;
  using Operation = void*;
  using Request = void*;
  using Group = void*;
  using ErrorHandler = void*;
  struct Status {
    int source, tag, error, cancelled;
    size_t count;
  };
  static constexpr int kAnySource = -1;
  static constexpr int kTagLimit = 0;  // the key of the attribute
  static Communicator world(void* library) { return symbol_of(library, "ompi_mpi_comm_world"); }
  static Datatype byte(void* library) { return symbol_of(library, "ompi_mpi_byte"); }
  static ErrorHandler errors_return(void* library) {
    return symbol_of(library, "ompi_mpi_errors_return");
  }
  static void* in_place() { return reinterpret_cast<void*>(1); }
};

// Handles are numbers, those of constants fixed.
struct Mpich {
  using Communicator = int;
  using Datatype = int;
  using Operation = int;
  using Request = int;
  using Group = int;
  using ErrorHandler = int;
  struct Status {
    int count_low, count_high, source, tag, error;
  };
  static constexpr int kAnySource = -2;
  static constexpr int kTagLimit = 0x64400001;
  static Communicator world(void*) { return 0x44000000; }
  static Datatype byte(void*) { return 0x4c00010d; }
  static ErrorHandler errors_return(void*) { return 0x54000001; }
  static void* in_place() { return reinterpret_cast<void*>(-1); }
};

// The functions of a library that the engine calls.
template <class Abi>
struct Mpi {
  using Comm = typename Abi::Communicator;
  using Type = typename Abi::Datatype;
  using Op = typename Abi::Operation;
  using Request = typename Abi::Request;
  using Group = typename Abi::Group;
  using Status = typename Abi::Status;
  using Step = void (*)(void* in, void* inout, int* count, Type* type);

  explicit Mpi(void* library)
      : world(Abi::world(library)),
        byte(Abi::byte(library)),
        errors_return(Abi::errors_return(library)) {
    const auto load = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol_of(library, name));
    };
    load(init_thread, "MPI_Init_thread");
    load(initialized, "MPI_Initialized");
    load(finalized, "MPI_Finalized");
    load(finalize, "MPI_Finalize");
    load(query_thread, "MPI_Query_thread");
    load(comm_rank, "MPI_Comm_rank");
    load(comm_size, "MPI_Comm_size");
    load(comm_dup, "MPI_Comm_dup");
    load(comm_free, "MPI_Comm_free");
    load(comm_group, "MPI_Comm_group");
    load(group_incl, "MPI_Group_incl");
    load(group_free, "MPI_Group_free");
    load(comm_create_group, "MPI_Comm_create_group");
    load(comm_set_errhandler, "MPI_Comm_set_errhandler");
    load(comm_get_attr, "MPI_Comm_get_attr");
    load(error_string, "MPI_Error_string");
    load(type_contiguous, "MPI_Type_contiguous");
    load(type_commit, "MPI_Type_commit");
    load(op_create, "MPI_Op_create");
    load(iallreduce, "MPI_Iallreduce");
    load(allreduce, "MPI_Allreduce");
    load(reduce, "MPI_Reduce");
    load(bcast, "MPI_Bcast");
    load(allgatherv, "MPI_Allgatherv");
    load(gatherv, "MPI_Gatherv");
    load(scatterv, "MPI_Scatterv");
    load(reduce_scatter, "MPI_Reduce_scatter");
    load(alltoallv, "MPI_Alltoallv");
    load(isend, "MPI_Isend");
    load(irecv, "MPI_Irecv");
    load(test, "MPI_Test");
    load(cancel, "MPI_Cancel");
    load(get_count, "MPI_Get_count");
  }

  Comm world;
  Type byte;
  typename Abi::ErrorHandler errors_return;

  int (*init_thread)(int*, char***, int, int*);
  int (*initialized)(int*);
  int (*finalized)(int*);
  int (*finalize)();
  int (*query_thread)(int*);
  int (*comm_rank)(Comm, int*);
  int (*comm_size)(Comm, int*);
  int (*comm_dup)(Comm, Comm*);
  int (*comm_free)(Comm*);
  int (*comm_group)(Comm, Group*);
  int (*group_incl)(Group, int, const int*, Group*);
  int (*group_free)(Group*);
  int (*comm_create_group)(Comm, Group, int, Comm*);
  int (*comm_set_errhandler)(Comm, typename Abi::ErrorHandler);
  int (*comm_get_attr)(Comm, int, void*, int*);
  int (*error_string)(int, char*, int*);
  int (*type_contiguous)(int, Type, Type*);
  int (*type_commit)(Type*);
  int (*op_create)(Step, int, Op*);
  int (*iallreduce)(const void*, void*, int, Type, Op, Comm, Request*);
  int (*allreduce)(const void*, void*, int, Type, Op, Comm);
  int (*reduce)(const void*, void*, int, Type, Op, int, Comm);
  int (*bcast)(void*, int, Type, int, Comm);
  int (*allgatherv)(const void*, int, Type, void*, const int*, const int*, Type, Comm);
  int (*gatherv)(const void*, int, Type, void*, const int*, const int*, Type, int, Comm);
  int (*scatterv)(const void*, const int*, const int*, Type, void*, int, Type, int, Comm);
  int (*reduce_scatter)(const void*, void*, const int*, Type, Op, Comm);
  int (*alltoallv)(const void*, const int*, const int*, Type, void*, const int*, const int*, Type,
                   Comm);
  int (*isend)(const void*, int, Type, int, int, Comm, Request*);
  int (*irecv)(void*, int, Type, int, int, Comm, Request*);
  int (*test)(Request*, int*, Status*);
  int (*cancel)(Request*);
  int (*get_count)(const Status*, Type, int*);
};

}  // namespace treadle::distributed
