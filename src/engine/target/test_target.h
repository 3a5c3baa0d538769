// A target that is this very process, with both ends of its ring: records are written as
// the client would, and as a lying client would. For tests and fuzz targets.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/scoped_fd.h"
#include "engine/session_config.h"
#include "engine/target/target.h"
#include "engine/tsc_clock.h"
#include "rt/machine.h"
#include "unwind/address_space.h"
#include "unwind/module.h"
#include "walk/stack_hash.h"
#include "wire/records.h"
#include "wire/ring_writer.h"

namespace heapprofd {

// Of a turn that no test takes long enough to see.
inline uint64_t FarEnd() {
  return MonotonicNs() + 60'000'000'000;
}

inline int OwnProcess() {
  static const ScopedFd process(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  return process.get();
}

// Of a call from this process's code.
inline uint64_t KeyInOwnCode(uint64_t offset) {
  return reinterpret_cast<uint64_t>(&KeyInOwnCode) + offset;
}

// For what the client does with this memory.
inline RingWriter WriterOf(SharedMemory& memory) {
  return {&memory.client().ring, const_cast<std::byte*>(memory.ring()),
          memory.ring_size()};
}

// Of a stack whose keys are given innermost first.
inline uint64_t HashOfStack(std::span<const uint64_t> keys) {
  uint64_t hash = kEmptyStackHash;
  for (size_t i = keys.size(); i-- > 0;)
    hash = ExtendStackHash(hash, keys[i]);
  return hash;
}

// Of one byte that stands for itself.
inline SampleRecord TestSample(uint64_t address,
                               uint64_t size,
                               uint64_t outer_hash = kEmptyStackHash) {
  return {.address = address,
          .size = size,
          .tsc = rt::ReadTsc(),
          .outer_hash = outer_hash,
          .interval = 1,
          .function = 0,
          .thread_id = 1,
          .frame_count = 0,
          .heap_id = 0,
          .flags = 0};
}

// What this process has mapped: read once, and not for each target anew.
struct OwnModules {
  OwnModules() { static_cast<void>(space.Refresh()); }

  ModuleCache modules;
  std::vector<Mapping> mappings;
  AddressSpace space{getpid(), &modules, &mappings};  // keeps the modules
};

class TestTarget {
 public:
  static constexpr uint64_t kRingSize = 64 * 1024;

  explicit TestTarget(SessionConfig config = {}) {
    static OwnModules own;
    config.ring_size_bytes = kRingSize;
    const Target::Origin origin{
        .pid = getpid(), .thread = getpid(), .process = OwnProcess()};
    auto target = Target::Create(origin, config, &own.modules, &clock_);
    if (!target.ok()) {
      fprintf(stderr, "%s\n", target.status().message().c_str());
      abort();
    }
    target_ = std::move(target).value();
    memory_ = &target_->recorder().memory();
    writer_ = WriterOf(*memory_);
  }

  Target& target() { return *target_; }

  // For whoever owns targets. What follows is of use as long as it is recorded.
  std::unique_ptr<Target> Take() { return std::move(target_); }

  SharedMemory& memory() { return *memory_; }

  ClientBlock& client() { return memory().client(); }

  TscClock& clock() { return clock_; }

  RingWriter& writer() { return writer_; }

  // False: there is no space.
  bool Write(RecordType type, std::span<const std::byte> payload) {
    const auto reservation = writer_.Reserve(type, payload.size());
    if (reservation.payload == nullptr)
      return false;
    if (!payload.empty())
      memcpy(reservation.payload, payload.data(), payload.size());
    writer_.Commit(reservation);
    return true;
  }

  // `keys`: of its stack, innermost first.
  bool WriteSample(SampleRecord record, std::span<const uint64_t> keys) {
    record.frame_count = static_cast<uint16_t>(keys.size());
    std::vector<std::byte> payload(sizeof(record) + keys.size_bytes());
    memcpy(payload.data(), &record, sizeof(record));
    if (!keys.empty())
      memcpy(payload.data() + sizeof(record), keys.data(), keys.size_bytes());
    return Write(RecordType::kSample, payload);
  }

  bool WriteFree(RecordType type, const FreeRecord& record) {
    return Write(type, std::as_bytes(std::span(&record, 1)));
  }

  // All that is there, to a dump. `writers_gone`: nobody completes what is pending.
  void DrainAndDump(bool writers_gone) {
    constexpr size_t kAll = 1'000'000;
    TargetRecorder& recorder = target_->recorder();
    clock_.Update();
    do {
      recorder.Drain(kAll, writers_gone);
    } while (recorder.ring().is_behind());
    recorder.UpdateDump();
  }

 private:
  TscClock clock_;
  std::unique_ptr<Target> target_;
  SharedMemory* memory_ = nullptr;
  RingWriter writer_;
};

}  // namespace heapprofd
