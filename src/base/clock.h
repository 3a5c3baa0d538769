// The clock that all times of events are on, and waiting by it.
#pragma once

#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace heapprofd {

constexpr uint64_t kNsPerUs = 1'000;
constexpr uint64_t kNsPerMs = 1'000'000;

inline uint64_t ClockNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t MonotonicNs() {
  return ClockNs(CLOCK_MONOTONIC);
}

// What the calling thread has used of a processor.
inline uint64_t ThreadCpuNs() {
  return ClockNs(CLOCK_THREAD_CPUTIME_ID);
}

// `ns` < 1 s. A signal ends it early.
inline void SleepNs(uint64_t ns) {
  const timespec pause{.tv_sec = 0, .tv_nsec = static_cast<long>(ns)};
  nanosleep(&pause, nullptr);
}

// By the same clock; at once when that is over. Signals do not end it early.
inline void SleepUntil(uint64_t ns) {
  const timespec until{.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
                       .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

// `ticks`: the unit of the times in /proc/stat and /proc/PID/stat.
inline uint64_t TicksToNs(uint64_t ticks) {
  return ticks * (1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK)));
}

}  // namespace heapprofd
