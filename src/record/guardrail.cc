#include "record/guardrail.h"

#include <time.h>
#include <unistd.h>

#include "engine/process_info.h"

namespace heapprofd {
namespace {

double OwnCpuSeconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

}  // namespace

Guardrail::Guardrail(const Guardrails& limits)
    : limits_(limits), cpu_at_start_(OwnCpuSeconds()) {}

bool Guardrail::IsHit() const {
  if (limits_.max_memory_kib != 0 && AnonymousKib(getpid()) > limits_.max_memory_kib)
    return true;
  return limits_.max_cpu_seconds != 0 &&
         OwnCpuSeconds() - cpu_at_start_ > static_cast<double>(limits_.max_cpu_seconds);
}

}  // namespace heapprofd
