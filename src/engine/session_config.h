// What a session records and how: the meanings of Perfetto's HeapprofdConfig, one struct
// per concern.
#pragma once

#include <sys/types.h>

#include <array>
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
  bool idle_allocations = false;    // what of live memory nobody touches
  DeviceOptions device;
};

// The member at the end of a path: Member<&SessionConfig::targets, &TargetRules::all>.
template <auto... kPath>
auto& Member(SessionConfig& config) {
  return (config.*....*kPath);
}

// A field of HeapprofdConfig (proto/config.proto) that is true where the member is not as
// by default. By this table and the next one configurations are read, written and sent
// (config/plain_fields.h).
struct SwitchField {
  const char* name;
  bool& (*of)(SessionConfig&);
  const char* host_option = nullptr;  // that devices do not know: the field is ours
};

inline constexpr auto kSwitchFields = std::to_array<SwitchField>({
    {"all", Member<&SessionConfig::targets, &TargetRules::all>},
    {"no_startup", Member<&SessionConfig::targets, &TargetRules::no_startup>},
    {"no_running", Member<&SessionConfig::targets, &TargetRules::no_running>},
    {"all_heaps", Member<&SessionConfig::heaps, &HeapSelection::all>},
    {"dump_at_max", Member<&SessionConfig::dumps, &DumpSchedule::at_max>},
    {"disable_fork_teardown",
     Member<&SessionConfig::device, &DeviceOptions::disable_fork_teardown>},
    {"disable_vfork_detection",
     Member<&SessionConfig::device, &DeviceOptions::disable_vfork_detection>},
    {"stream_allocations", Member<&SessionConfig::stream_allocations>},
    {"idle_allocations", Member<&SessionConfig::idle_allocations>},
    {"malloc_info", Member<&SessionConfig::ask_allocator>, "--malloc-info"},
    {"list_live_blocks", Member<&SessionConfig::list_live_blocks>},
    {"no_children", Member<&SessionConfig::follow_children>, "--no-children"},
});

// A field with the member's value; 0 is the default of both.
struct NumberField {
  const char* name;
  uint64_t& (*of)(SessionConfig&);
};

inline constexpr auto kNumberFields = std::to_array<NumberField>({
    {"block_client_timeout_us", Member<&SessionConfig::block_timeout_us>},
    {"min_anonymous_memory_kb",
     Member<&SessionConfig::targets, &TargetRules::min_anonymous_kib>},
    {"max_heapprofd_memory_kb",
     Member<&SessionConfig::guardrails, &Guardrails::max_memory_kib>},
    {"max_heapprofd_cpu_secs",
     Member<&SessionConfig::guardrails, &Guardrails::max_cpu_seconds>},
    {"adaptive_sampling_shmem_threshold",
     Member<&SessionConfig::adaptive_threshold_bytes>},
    {"adaptive_sampling_max_sampling_interval_bytes",
     Member<&SessionConfig::adaptive_max_interval_bytes>},
});

}  // namespace heapprofd
