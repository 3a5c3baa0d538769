#include "base/column_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

// Smaller ones are not worth a file, and not counted.
constexpr size_t kLeastCounted = size_t{64} << 10;

std::atomic<uint64_t> in_memory = 0;  // bytes
std::atomic<uint64_t> in_files = 0;

// nullptr: there is none. Never freed: columns may outlive everything else.
ColumnBudget* set_budget = nullptr;

size_t Counted(size_t bytes) {
  return bytes >= kLeastCounted ? bytes : 0;
}

[[noreturn]] void GiveUp(const std::string& what, int error) {
  set_budget->give_up(what + " in " + set_budget->directory + ": " + strerror(error));
  abort();
}

// Without a name. Negative: errno says why there can be none.
int MakeFile(const std::string& directory) {
  return open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

// So many bytes of it, with all of their blocks: no write to them finds the disk full.
void* MapFile(int file, size_t bytes) {
  int error = EINTR;
  while (error == EINTR)
    error = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  if (error != 0)
    GiveUp("cannot make a temporary file larger", error);
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (data == MAP_FAILED)
    GiveUp("cannot map a temporary file", errno);
  return data;
}

void GrowInFile(ColumnMemory* memory, size_t bytes) {
  munmap(memory->data, memory->bytes);  // the file has what was written
  memory->data = MapFile(memory->file, bytes);
  in_files += bytes - memory->bytes;
  memory->bytes = bytes;
}

void MoveToFile(ColumnMemory* memory, size_t bytes) {
  const int file = MakeFile(set_budget->directory);
  if (file < 0)
    GiveUp("cannot make a temporary file", errno);
  void* const data = MapFile(file, bytes);
  if (memory->bytes > 0)
    memcpy(data, memory->data, std::min(memory->bytes, bytes));
  memory->Free();
  *memory = {.data = data, .bytes = bytes, .file = file};
  in_files += bytes;
}

}  // namespace

Status SetColumnBudget(ColumnBudget budget) {
  const ScopedFd file(MakeFile(budget.directory));
  if (!file.valid())
    return Status::FromErrno("cannot make a temporary file in " + budget.directory,
                             errno);

  struct statfs system {};

  fstatfs(file.get(), &system);
  if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC)
    return Status(StatusCode::kInvalidArgument,
                  "cannot keep to a memory budget: files in " + budget.directory +
                      " are in memory themselves; name a directory on a disk in TMPDIR");
  set_budget = new ColumnBudget(std::move(budget));
  return {};
}

uint64_t ColumnBytesInMemory() {
  return in_memory;
}

uint64_t ColumnBytesInFiles() {
  return in_files;
}

void ColumnMemory::Resize(size_t new_bytes) {
  if (file >= 0)
    return new_bytes > bytes ? GrowInFile(this, new_bytes) : void();
  // While it is moved there are the old and the new one; the kernel does that in place.
  const uint64_t others = in_memory - Counted(bytes);
  if (set_budget != nullptr && Counted(new_bytes) > 0 &&
      others + new_bytes > set_budget->bytes)
    return MoveToFile(this, new_bytes);
  void* const resized = realloc(data, new_bytes);
  // As operator new does: who has limited our memory says how that ends.
  if (const std::new_handler end = std::get_new_handler(); resized == nullptr && end)
    end();
  HPD_CHECK(resized != nullptr);
  in_memory += Counted(new_bytes) - Counted(bytes);  // may wrap around, and back
  data = resized;
  bytes = new_bytes;
}

void ColumnMemory::Free() {
  if (file >= 0) {
    munmap(data, bytes);
    close(file);
    in_files -= bytes;
  } else {
    free(data);
    in_memory -= Counted(bytes);
  }
  *this = {};
}

}  // namespace heapprofd
