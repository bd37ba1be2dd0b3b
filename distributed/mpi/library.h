// The MPI library of the program, found at run time: the one that is loaded already, or that of the
// `mpirun` which started the program. Treadle is not compiled against any.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "distributed/engine.h"

namespace treadle::distributed {

struct MpiPlace {
  int rank, size;
};

// Whether there is a library. Loads it.
bool mpi_is_there();
// The rank of this process among all. Initialises MPI where nobody has. Throws Failure.
MpiPlace mpi_start();
// Ends MPI where mpi_start() began it.
void mpi_finish();
// The engine of a group of these ranks; all of them call it, with the same name.
std::shared_ptr<Engine> mpi_connect(const std::vector<int>& members, const std::string& name);

}  // namespace treadle::distributed
