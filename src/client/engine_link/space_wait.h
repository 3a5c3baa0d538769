// Waiting for space in a full ring, when the session blocks.
//
// The engine wakes those that wait, a few at a time (wire/ring_reader.h). Whoever waits
// looks by itself only now and then, for an engine that is gone: a thousand threads that
// looked every millisecond would leave no processor to the engine that they wait for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/engine_link/engine_wait.h"

namespace heapprofd {

// Which record of the program's call it is: both together wait no longer than one.
enum class Part : uint8_t { kOnly, kFirstOfTwo, kLast };

// What one record waits, as a loop: while (!reserved && wait.ForSpace(payload)) reserve.
class SpaceWait {
 public:
  explicit SpaceWait(Part part);
  ~SpaceWait();

  SpaceWait(const SpaceWait&) = delete;
  SpaceWait& operator=(const SpaceWait&) = delete;

  // There was none. False: the session does not block, or it is in vain: drop the record.
  bool ForSpace(size_t payload);

 private:
  void Sleep(uint32_t mark);

  const Part part_;
  EngineWait wait_;
  uint64_t nap_ns_;
};

}  // namespace heapprofd
