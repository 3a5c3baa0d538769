#include "record/guardrail.h"

#include <time.h>
#include <unistd.h>

#include <utility>

#include "engine/process_info.h"

namespace heapprofd {

double OwnCpuSeconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

Guardrail::Guardrail(const Guardrails& limits, std::function<double()> cpu_seconds)
    : limits_(limits),
      cpu_seconds_(std::move(cpu_seconds)),
      cpu_at_start_(cpu_seconds_()) {}

bool Guardrail::IsHit() const {
  if (limits_.max_memory_kib != 0 && AnonymousKib(getpid()) > limits_.max_memory_kib)
    return true;
  return limits_.max_cpu_seconds != 0 &&
         cpu_seconds_() - cpu_at_start_ > static_cast<double>(limits_.max_cpu_seconds);
}

}  // namespace heapprofd
