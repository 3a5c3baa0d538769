#include "engine/left_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace heapprofd {

// A private mapping shows what others write, and does not count as one of those.
LeftMemory::LeftMemory(ScopedFd client_file) : file_(std::move(client_file)) {
  struct stat status {};

  if (fstat(file_.get(), &status) == 0 &&
      static_cast<uint64_t>(status.st_size) > kRingOffset)
    fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(kRingOffset),
              status.st_size - static_cast<off_t>(kRingOffset));
  void* base = mmap(nullptr, sizeof(ClientBlock), PROT_READ, MAP_PRIVATE, file_.get(), 0);
  client_ = base == MAP_FAILED ? nullptr : static_cast<const ClientBlock*>(base);
}

LeftMemory::~LeftMemory() {
  if (client_ != nullptr)
    munmap(const_cast<ClientBlock*>(client_), sizeof(ClientBlock));
}

bool LeftMemory::IsInUse() const {
  return fcntl(file_.get(), F_ADD_SEALS, F_SEAL_WRITE) != 0 && errno == EBUSY;
}

}  // namespace heapprofd
