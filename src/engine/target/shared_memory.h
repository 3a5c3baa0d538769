// The memory files of one target, from the engine's side: created, sealed against
// resizing, mapped, and handed to the client as two descriptors (wire/shared_memory.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "wire/shared_memory.h"

namespace heapprofd {

class SharedMemory {
 public:
  // `ring_size`: bytes, a power of two in [kMinRingSize, kMaxRingSize].
  static Result<std::unique_ptr<SharedMemory>> Create(uint64_t ring_size);

  // Takes two empty memory files that the target has created and mapped itself: sizes,
  // seals and maps them. There is no engine lock in them: the target might have mapped
  // them for writing before they were sealed, and a mutex holds pointers. Its client goes
  // by the heartbeat.
  static Result<std::unique_ptr<SharedMemory>> Adopt(ScopedFd engine_fd,
                                                     ScopedFd client_fd,
                                                     uint64_t ring_size);

  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  EngineBlock& engine() { return *engine_; }

  ClientBlock& client() { return *client_; }

  const std::byte* ring() const {
    return reinterpret_cast<const std::byte*>(client_) + kRingOffset;
  }

  uint64_t ring_size() const { return ring_size_; }

  int engine_fd() const { return engine_fd_.get(); }

  int client_fd() const { return client_fd_.get(); }

  // Ends this: unmaps everything.
  static ScopedFd TakeClientFile(std::unique_ptr<SharedMemory> memory);

  // Gives the pages of consumed ring bytes [from, to) (positions, not offsets) back to
  // the system, so that a large ring costs the target only what is really waiting in it.
  void DiscardConsumed(uint64_t from, uint64_t to);

 private:
  SharedMemory() = default;

  Status MapEngineBlock();
  Status MapClientBlock();

  ScopedFd engine_fd_;
  ScopedFd client_fd_;
  EngineBlock* engine_ = nullptr;
  ClientBlock* client_ = nullptr;
  uint64_t ring_size_ = 0;
  bool holds_lock_ = false;
};

}  // namespace heapprofd
