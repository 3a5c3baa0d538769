#include "wire/memory_files.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace heapprofd {
namespace {

// Nobody can change its size, so touching a mapping cannot fail.
Result<ScopedFd> CreateSealed(const char* name, uint64_t size) {
  ScopedFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid())
    return Status::FromErrno("cannot create shared memory", errno);
  if (ftruncate(fd.get(), static_cast<off_t>(size)) != 0)
    return Status::FromErrno("cannot size shared memory", errno);
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return Status::FromErrno("cannot seal shared memory", errno);
  return fd;
}

void* MapAt(void* address, uint64_t size, int fd, uint64_t offset) {
  const int flags = address != nullptr ? MAP_SHARED | MAP_FIXED : MAP_SHARED;
  return mmap(address, size, PROT_READ | PROT_WRITE, flags, fd,
              static_cast<off_t>(offset));
}

static_assert(sizeof(pthread_mutex_t) <= sizeof(SessionControl::engine_lock));

pthread_mutex_t* LockIn(EngineBlock* block) {
  return reinterpret_cast<pthread_mutex_t*>(&block->control.engine_lock);
}

// Tells the client by the kernel's help when this thread is no more.
void HoldEngineLock(EngineBlock* block) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(LockIn(block), &attributes);
  pthread_mutexattr_destroy(&attributes);
  pthread_mutex_lock(LockIn(block));
}

}  // namespace

// The mutex holds pointers that glibc and the kernel follow. Without the last seal, which
// kernels before 5.1 lack, a target could write them; its user may do that to an engine
// of his own, and to none of root's.
Result<std::unique_ptr<SharedMemory>> SharedMemory::Create(uint64_t ring_size,
                                                           EngineLock lock) {
  std::unique_ptr<SharedMemory> memory(new SharedMemory());
  memory->ring_size_ = ring_size;
  HPD_TRY_ASSIGN(memory->engine_fd_,
                 CreateSealed("heapprofd-engine", sizeof(EngineBlock)));
  HPD_TRY_ASSIGN(memory->client_fd_,
                 CreateSealed("heapprofd-ring", kRingOffset + ring_size));
  bool is_sealed = false;
  HPD_TRY(memory->MapEngineBlock(&is_sealed));
  if (lock == EngineLock::kHeld && (is_sealed || geteuid() != 0)) {
    HoldEngineLock(memory->engine_);
    memory->holds_lock_ = true;
  }
  HPD_TRY(memory->MapClientBlock());
  return memory;
}

// Sealed when it is mapped: from then on nobody can map it writable, we neither.
Status SharedMemory::MapEngineBlock(bool* is_sealed) {
  void* engine = MapAt(nullptr, sizeof(EngineBlock), engine_fd_.get(), 0);
  if (engine == MAP_FAILED)
    return Status::FromErrno("cannot map shared memory", errno);
  engine_ = static_cast<EngineBlock*>(engine);
  *is_sealed =
      fcntl(engine_fd_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0;
  return {};
}

Status SharedMemory::MapClientBlock() {
  const uint64_t total = kRingOffset + 2 * ring_size_;
  void* base =
      mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return Status::FromErrno("cannot reserve address space for the ring", errno);
  client_ = static_cast<ClientBlock*>(base);
  auto* start = static_cast<std::byte*>(base);
  const int fd = client_fd_.get();
  if (MapAt(start, kRingOffset + ring_size_, fd, 0) == MAP_FAILED ||
      MapAt(start + kRingOffset + ring_size_, ring_size_, fd, kRingOffset) == MAP_FAILED)
    return Status::FromErrno("cannot map the ring", errno);
  // Those who are forked to finish a recording, or to read its files, have no part in it.
  madvise(client_, total, MADV_DONTFORK);
  return {};
}

SharedMemory::~SharedMemory() {
  if (engine_ != nullptr) {
    if (holds_lock_)
      pthread_mutex_unlock(LockIn(engine_));
    munmap(engine_, sizeof(EngineBlock));
  }
  if (client_ != nullptr)
    munmap(client_, kRingOffset + 2 * ring_size_);
}

ScopedFd SharedMemory::TakeClientFile(std::unique_ptr<SharedMemory> memory) {
  return std::move(memory->client_fd_);
}

void SharedMemory::DiscardConsumed(uint64_t from, uint64_t to) {
  from = (from + kPageSize - 1) / kPageSize * kPageSize;
  to = to / kPageSize * kPageSize;
  while (from < to) {
    const uint64_t offset = from % ring_size_;
    const uint64_t length = std::min(to - from, ring_size_ - offset);
    fallocate(client_fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(kRingOffset + offset), static_cast<off_t>(length));
    from += length;
  }
}

}  // namespace heapprofd
