// Programs that were started with the library but under nobody's command: they look for a
// service (wire/service_place.h) when they start, and lie dormant until a session wants
// them. Dormant, a hook compares one shared number per place.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>

#include "client/session.h"
#include "wire/service_place.h"

namespace heapprofd {

struct ServicePlace {
  std::atomic<const WakePage*> wake{};  // nullptr: no service was ever in this place
  std::atomic<uint32_t> seen{};         // generation for which the service was asked
  char socket_path[108] = {};
};

inline constexpr unsigned kServicePlaces = 2;  // the user's, the system's
extern ServicePlace g_service_places[kServicePlaces];

// Finds the places and maps their wake pages; once per process image.
void OpenServicePlaces();

// False: the program reports to one session only, or to nobody.
inline bool HasService() {
  return std::any_of(std::begin(g_service_places), std::end(g_service_places),
                     [](const ServicePlace& place) { return place.wake != nullptr; });
}

// True when a session has begun since the services were asked last.
inline bool IsWoken() {
  for (const ServicePlace& place : g_service_places) {
    const WakePage* wake = place.wake.load(std::memory_order_acquire);
    if (wake != nullptr && wake->generation.load(std::memory_order_relaxed) !=
                               place.seen.load(std::memory_order_relaxed))
      return true;
  }
  return false;
}

// Nobody profiles the program and nobody wants to: its calls go straight on.
inline bool IsAsleep() {
  return g_session.state.load(std::memory_order_relaxed) == SessionState::kDormant &&
         !IsWoken();
}

// Asks the services; true: g_session is connected. `was_dormant`: the program has run
// before.
bool JoinService(bool was_dormant);

// kBlockingVariable: waits until a session wants this program.
bool WaitForService();

}  // namespace heapprofd
