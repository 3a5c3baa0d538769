// For whoever wants to know of sessions without calling the hooks: waiting for one to
// begin or end, and a switch that costs a look at memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "client/engine_link/service_client.h"

namespace heapprofd {

// A page of the caller's own, `recordings` of which tells that something may be recorded:
// that of a service's wake page, so that it changes by itself.
struct alignas(kWakePageSize) SwitchPage {
  WakePage word;
};

// Shows the word of the system's service in `page`, or of the user's where there is no
// system's, or, `is_on`, one that says yes. False: there is one more place, and only
// waiting tells what begins there.
bool SetSwitch(SwitchPage& page, bool is_on);

// Waits until another session than `session` (0: any) may be under way, or `stop` is set
// and its futex woken. False: stop, or nothing will ever change.
bool WaitForSession(uint32_t session, const std::atomic<uint32_t>& stop);

}  // namespace heapprofd
