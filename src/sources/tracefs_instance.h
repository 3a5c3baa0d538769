// A ring buffer of the kernel's tracer with events and settings of its own
// (Documentation/trace/ftrace.rst, "Instances").
#pragma once

#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

class TracefsInstance {
 public:
  TracefsInstance() = default;
  TracefsInstance(const TracefsInstance&) = delete;
  TracefsInstance& operator=(const TracefsInstance&) = delete;

  // Makes the instance, with times on CLOCK_BOOTTIME, and removes those that processes of
  // ours have left behind when they were killed. `buffer_kib`: for each processor.
  Status Create(uint32_t buffer_kib);

  // "sched_switch", "sched/sched_switch" or "sched/*".
  Status Enable(const std::string& event);

  // "group/event" of all that are enabled.
  std::vector<std::string> Enabled() const;

  // The description of an event of Enabled.
  std::string Format(const std::string& event) const;

  // The buffers of all processors, by number; pages are read without waiting. An invalid
  // one belongs to a processor that is off.
  std::vector<ScopedFd> OpenBuffers() const;

  // Not by the destructor, which runs in forked processes, too. The buffers must be
  // closed by everybody.
  void Remove();

 private:
  std::string path_;  // empty: none
};

}  // namespace heapprofd
