#include "engine/target/published_config.h"

#include <algorithm>

#include "base/clock.h"
#include "profile/model.h"
#include "wire/records.h"

namespace heapprofd {
namespace {

constexpr uint64_t kNeverInterval = uint64_t{1} << 60;  // no allocation is ever sampled

// Whether an interval of one byte stays one, and nobody else is shown what is in the
// ring.
bool RecordsAll(const SessionConfig& config) {
  return config.when_full == WhenFull::kBlock && config.adaptive_threshold_bytes == 0 &&
         !config.stream_allocations;
}

}  // namespace

void PublishConfig(const SessionConfig& config, EngineBlock* engine) {
  HeapRules& rules = engine->heap_rules;
  FillHeapRules(config.heaps, config.interval_bytes, &rules);
  rules.max_interval = config.adaptive_max_interval_bytes != 0
                           ? std::min(config.adaptive_max_interval_bytes, kMaxInterval)
                           : kMaxInterval;
  const uint64_t interval = HeapIntervalByName(rules, kMallocHeapName);
  SessionControl& control = engine->control;
  control.interval.store(interval != 0 ? interval : kNeverInterval);
  control.when_full.store(static_cast<uint32_t>(config.when_full));
  control.block_timeout_us.store(config.block_timeout_us);
  control.check_period.store(config.check_period);
  control.max_stack_copy.store(kDefaultStackCopy);
  control.reports_all_frees.store(RecordsAll(config) && interval == 1 ? 1 : 0);
  control.look_at_exit.store(config.ask_allocator || config.idle_allocations ? 1 : 0);
  control.heartbeat.store(MonotonicNs());
  control.active.store(1, std::memory_order_release);
}

}  // namespace heapprofd
