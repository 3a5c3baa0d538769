// What a target's client is told of the session: its parameters in the shared memory, and
// the engine's own copy of those that the engine needs again. The shared ones are only
// written: a target might have changed them.
#pragma once

#include <cstdint>

#include "engine/session_config.h"
#include "wire/shared_memory.h"

namespace heapprofd {

class PublishedConfig {
 public:
  // Ends with `control.active`: from then on the client goes by it. `engine` outlives
  // this object.
  PublishedConfig(const SessionConfig& config, EngineBlock* engine);

  // Sampling interval of malloc's heap in force, bytes.
  uint64_t interval() const { return interval_; }

  const HeapRules& rules() const { return rules_; }

  // Doubles the intervals of all heaps, up to their limits.
  void DoubleIntervals();

 private:
  void PublishRules() const;

  EngineBlock& engine_;
  HeapRules rules_{};
  uint64_t interval_;
};

}  // namespace heapprofd
