#include "engine/target/published_config.h"

#include <algorithm>
#include <iterator>

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

PublishedConfig::PublishedConfig(const SessionConfig& config, EngineBlock* engine)
    : engine_(*engine) {
  FillHeapRules(config.heaps, config.interval_bytes, &rules_);
  rules_.max_interval = config.adaptive_max_interval_bytes != 0
                            ? std::min(config.adaptive_max_interval_bytes, kMaxInterval)
                            : kMaxInterval;
  PublishRules();
  const uint64_t interval = HeapIntervalByName(rules_, kMallocHeapName);
  interval_ = interval != 0 ? interval : kNeverInterval;
  SessionControl& control = engine_.control;
  control.interval.store(interval_);
  control.when_full.store(static_cast<uint32_t>(config.when_full));
  control.block_timeout_us.store(config.block_timeout_us);
  control.check_period.store(config.check_period);
  control.max_stack_copy.store(kDefaultStackCopy);
  control.reports_all_frees.store(RecordsAll(config) && interval_ == 1 ? 1 : 0);
  control.look_at_exit.store(config.ask_allocator || config.idle_allocations ? 1 : 0);
  control.heartbeat.store(MonotonicNs());
  control.active.store(1, std::memory_order_release);
}

void PublishedConfig::PublishRules() const {
  HeapRules& shared = engine_.heap_rules;
  shared.other_interval = rules_.other_interval;
  shared.max_interval = rules_.max_interval;
  shared.count = rules_.count;
  std::copy(std::begin(rules_.rules), std::end(rules_.rules), std::begin(shared.rules));
}

void PublishedConfig::DoubleIntervals() {
  if (interval_ < rules_.max_interval)
    interval_ = std::min(interval_ * 2, kMaxInterval);
  engine_.control.interval.store(interval_);
  uint32_t shift = rules_.interval_shift.load(std::memory_order_relaxed);
  shift = std::min(shift + 1, kMaxIntervalShift);
  rules_.interval_shift.store(shift, std::memory_order_relaxed);
  engine_.heap_rules.interval_shift.store(shift);
}

}  // namespace heapprofd
