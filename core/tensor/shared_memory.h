// Storages whose bytes are shared by several processes.
//
//   share_memory(t.storage());    // the bytes move; every tensor on them goes with them
//   int fd = shared_descriptor(t.storage());    // sent to another process, which calls
//   Storage same = open_shared(fd, nbytes);
//
// The memory is a file without a name (memfd). The system counts its mappings and descriptors, and
// frees it after the last one, however that process ended. A storage holds its descriptor for its
// whole life. A process has one storage for each piece of shared memory, however often it arrives.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/storage.h"

namespace treadle {

// A new storage of zeros. RuntimeError when the system supplies no memory or no descriptor.
Storage new_shared(size_t nbytes);
// Moves the bytes of a CPU storage into shared memory, unless they are there already. Pointers to
// them remain valid: a large block keeps its address, and the old memory of others is kept until
// the storage dies.
void share_memory(const Storage& storage);
bool is_shared(const Storage& storage);
// The descriptor of a shared storage. The storage keeps its ownership.
int shared_descriptor(const Storage& storage);
// The storage over the memory of `descriptor`, which it takes over, even if it throws: RuntimeError
// when the memory is smaller than `nbytes`.
Storage open_shared(int descriptor, size_t nbytes);

// Called by the last owner of a storage in the table (StorageImpl::is_listed). From then on the
// table does not return the storage. False if open_shared() was faster and has taken a reference.
bool leave_shared_memory(const StorageImpl& storage);

}  // namespace treadle
