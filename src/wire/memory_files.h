// The memory files of one target, from the engine's side: created, sized, mapped, sealed,
// and only then handed to the client as two descriptors (wire/shared_memory.h).
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
  // Whether this thread holds SessionControl::engine_lock until the end of this object. A
  // client that was preloaded waits for that, an attached one goes by the heartbeat.
  enum class EngineLock : uint8_t { kHeld, kNotHeld };

  // Creates, sizes, maps and seals the files before another process can have a descriptor
  // of them. `ring_size`: bytes, a power of two in [kMinRingSize, kMaxRingSize].
  static Result<std::unique_ptr<SharedMemory>> Create(
      uint64_t ring_size, EngineLock lock = EngineLock::kHeld);

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

  Status MapEngineBlock(bool* is_sealed);
  Status MapClientBlock();

  ScopedFd engine_fd_;
  ScopedFd client_fd_;
  EngineBlock* engine_ = nullptr;
  ClientBlock* client_ = nullptr;
  uint64_t ring_size_ = 0;
  bool holds_lock_ = false;
};

}  // namespace heapprofd
