// Memory files, their mappings, and the table of storages in shared memory.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/tensor/shared_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/base/fork_safe_mutex.h"

namespace treadle {
namespace {

using FileId = std::pair<dev_t, ino_t>;

struct Segment {
  int descriptor;
  FileId id;
};

// The storages in shared memory. The table keeps none of them alive.
struct Table {
  ForkSafeMutex mutex;
  std::unordered_map<const StorageImpl*, Segment> segments;
  std::map<FileId, StorageImpl*> by_file;
};

Table& table() {
  // Never destroyed, because storages may outlive everything else.
  static auto* const it = new Table;
  return *it;
}

[[noreturn]] void fail_system(const char* what, size_t nbytes) {
  const int reason = errno;
  fail<ErrorKind::Runtime>("expected ", what, " for ", nbytes,
                           " bytes of shared memory, got: ", std::strerror(reason),
                           reason == EMFILE ? " (the limit is shown and raised by ulimit -n)" : "");
}

// A descriptor until it is released to another owner.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Memory of length 0 cannot be mapped.
size_t mapped_size(size_t nbytes) { return nbytes ? nbytes : 1; }

int new_file(size_t nbytes) {
  Descriptor file(memfd_create("treadle", MFD_CLOEXEC));
  if (file.get() < 0) fail_system("a file descriptor", nbytes);
  const auto size = static_cast<off_t>(mapped_size(nbytes));
  if (ftruncate(file.get(), size) != 0) fail_system("room", nbytes);
  return file.release();
}

void write_all(int fd, const void* data, size_t nbytes) {
  const char* from = static_cast<const char*>(data);
  for (size_t done = 0; done < nbytes;) {
    const ssize_t n = pwrite(fd, from + done, nbytes - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail_system("room", nbytes);
    done += static_cast<size_t>(n);
  }
}

void* map_file(int fd, size_t nbytes) {
  void* data = mmap(nullptr, mapped_size(nbytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) fail_system("room in the address space", nbytes);
  return data;
}

FileId id_of(int fd, size_t nbytes) {
  struct stat status {};
  if (fstat(fd, &status) != 0) fail_system("a descriptor", nbytes);
  check<ErrorKind::Runtime>(static_cast<size_t>(status.st_size) >= nbytes,
                            "expected shared memory of at least ", nbytes, " bytes, got ",
                            static_cast<size_t>(status.st_size));
  return {status.st_dev, status.st_ino};
}

// Under the table's lock.
void enter(Table& t, StorageImpl* storage, int descriptor, FileId id) {
  t.segments.insert_or_assign(storage, Segment{descriptor, id});
  t.by_file[id] = storage;
  storage->set_listed();
}

// The destruction of a storage in shared memory. It has left the table by then.
void unmap(int descriptor, void* data, size_t mapped) {
  munmap(data, mapped);
  close(descriptor);
}

// A storage over its own mapping. It takes over the descriptor, and the caller enters it in the
// table.
Storage over(void* data, size_t nbytes, Descriptor& file) {
  Storage storage = make_intrusive<StorageImpl>(
      data, nbytes, kCPU,
      [descriptor = file.get(), data, nbytes] { unmap(descriptor, data, mapped_size(nbytes)); });
  file.release();
  return storage;
}

// Moves a mapping to the address `to`, replacing the old one.
bool put_in_place(void* mapping, size_t nbytes, void* to) {
  return mremap(mapping, nbytes, nbytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
}

}  // namespace

Storage new_shared(size_t nbytes) {
  Descriptor file(new_file(nbytes));
  const FileId id = id_of(file.get(), nbytes);
  const int descriptor = file.get();
  Storage storage = over(map_file(descriptor, nbytes), nbytes, file);
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  enter(t, storage.get(), descriptor, id);
  return storage;
}

void share_memory(const Storage& storage) {
  check<ErrorKind::Runtime>(storage->device().is_cpu(), "expected memory on the cpu to share, got ",
                            storage->device());
  check<ErrorKind::Runtime>(storage->has_memory(),
                            "expected memory on the cpu to share, got a storage without memory, of "
                            "a tensor that stands for others");
  Table& t = table();
  const std::lock_guard lock(t.mutex);  // two threads do not both move it
  if (t.segments.count(storage.get())) return;
  const size_t nbytes = storage->nbytes();
  Descriptor file(new_file(nbytes));
  write_all(file.get(), storage->data(), nbytes);
  const FileId id = id_of(file.get(), nbytes);
  void* data = map_file(file.get(), nbytes);
  size_t mapped = mapped_size(nbytes);

  // Pages of the allocator's are replaced where they are.
  void* const before = storage->data();
  const size_t pages = storage->owns_memory() ? surrender_pages(before, nbytes) : 0;
  const bool in_place = pages && put_in_place(data, mapped, before);
  if (in_place) {
    data = before;
    mapped = pages;
  }
  const auto former = std::make_shared<std::function<void()>>();
  const int descriptor = file.get();
  *former = storage->replace_memory(data, [former, descriptor, data, mapped] {
    unmap(descriptor, data, mapped);
    if (*former) (*former)();
  });
  file.release();
  if (in_place)
    *former = nullptr;
  else if (pages)
    *former = [before, pages] { munmap(before, pages); };
  enter(t, storage.get(), descriptor, id);
}

bool is_shared(const Storage& storage) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  return t.segments.count(storage.get()) > 0;
}

int shared_descriptor(const Storage& storage) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto segment = t.segments.find(storage.get());
  check<ErrorKind::Runtime>(segment != t.segments.end(),
                            "expected a storage in shared memory, got one that is not");
  return segment->second.descriptor;
}

Storage open_shared(int descriptor, size_t nbytes) {
  Descriptor file(descriptor);
  const FileId id = id_of(descriptor, nbytes);
  Table& t = table();
  const auto known = [&] {
    const auto found = t.by_file.find(id);
    // Its last owner may be about to destroy it, but checks under this lock whether it is taken
    // again.
    return found != t.by_file.end() && found->second->nbytes() == nbytes &&
                   found->second->try_retain()
               ? Storage::adopt(found->second)
               : Storage();
  };
  {
    const std::lock_guard lock(t.mutex);
    if (Storage storage = known()) return storage;
  }
  Storage storage = over(map_file(descriptor, nbytes), nbytes, file);
  const std::lock_guard lock(t.mutex);
  if (Storage other = known()) return other;  // another thread was quicker
  enter(t, storage.get(), descriptor, id);
  return storage;
}

bool leave_shared_memory(const StorageImpl& storage) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  if (storage.use_count() > 1) return false;
  const auto segment = t.segments.find(&storage);
  if (segment == t.segments.end()) return true;
  const auto owner = t.by_file.find(segment->second.id);
  if (owner != t.by_file.end() && owner->second == &storage) t.by_file.erase(owner);
  t.segments.erase(segment);
  return true;
}

}  // namespace treadle
