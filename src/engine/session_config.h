// What a session records and how: the meanings of Perfetto's HeapprofdConfig, one struct
// per concern.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/heap_selection.h"
#include "wire/shared_memory.h"

namespace heapprofd {

inline constexpr uint64_t kDefaultInterval = 4096;               // bytes
inline constexpr uint64_t kDefaultRingSize = uint64_t{8} << 20;  // bytes
inline constexpr size_t kMaxLiveSamples = size_t{32} << 20;  // some 2 GiB of the engine's
inline constexpr uint32_t kDefaultStackCopy = 128 * 1024;    // bytes

// Which processes belong to a session. A process matches when a pid or a name does.
struct TargetRules {
  std::vector<std::string> names;  // see engine/target_rules.h
  std::vector<pid_t> pids;
  bool all = false;
  bool no_startup = false;         // not those that start while the session runs
  bool no_running = false;         // not those that ran before
  uint64_t min_anonymous_kib = 0;  // of already running ones: skip those with less
};

// When the session's heaps are written beside its end.
struct DumpSchedule {
  uint32_t phase_ms = 0;     // after the start: the first dump
  uint32_t interval_ms = 0;  // 0: none
  bool at_max = false;       // what was live when most was, in Perfetto's fields
};

// Limits of the engine itself; 0: none. A session that meets one stops.
struct Guardrails {
  uint64_t max_memory_kib = 0;   // anonymous and swapped memory of the engine's process
  uint64_t max_cpu_seconds = 0;  // its CPU time since the session began
};

// Acts on Android only; kept so that a configuration that is passed on is complete.
struct DeviceOptions {
  bool disable_fork_teardown = false;
  bool disable_vfork_detection = false;
  std::vector<std::string> installed_by;
};

struct SessionConfig {
  uint64_t interval_bytes = kDefaultInterval;
  uint64_t ring_size_bytes = kDefaultRingSize;
  WhenFull when_full = WhenFull::kBlock;
  size_t max_live_samples = kMaxLiveSamples;  // of one process
  uint64_t block_timeout_us = 0;              // 0: as long as the engine moves
  bool follow_children = true;
  uint32_t check_period =
      1024;  // every n-th sample of a thread proves its walk; 0: never
  // The interval doubles while fewer bytes of the ring are free; 0: only when records
  // were lost without blocking.
  uint64_t adaptive_threshold_bytes = 0;
  uint64_t adaptive_max_interval_bytes = 0;  // 0: no limit
  HeapSelection heaps;
  TargetRules targets;
  DumpSchedule dumps;
  Guardrails guardrails;
  std::vector<std::string> skip_symbol_prefixes;  // of mapping paths
  bool stream_allocations = false;  // every sample and free as an event of its own
  bool ask_allocator = false;       // malloc_info with each dump
  bool list_live_blocks = false;    // with their addresses, in the last dump
  DeviceOptions device;
};

}  // namespace heapprofd
