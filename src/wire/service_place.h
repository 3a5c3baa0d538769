// Where a service and the programs that have preloaded the client find each other.
//
//   DIRECTORY/socket  Hello and Welcome, control messages (wire/control.h)
//   DIRECTORY/wake    WakePage: programs that nobody profiles map it read-only, so that a
//                     new session can wake them without a signal and without a thread
//   DIRECTORY/lock    held by the service that runs
//
// DIRECTORY is the value of kDirectoryVariable; without it the first of
// $XDG_RUNTIME_DIR/heapprofd (or /tmp/heapprofd-UID) and /run/heapprofd that has a
// service which wants the program. Whoever connects checks that the other side is root or
// the same user; whoever maps the page checks that its owner is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heapprofd {

inline constexpr char kDirectoryVariable[] = "HEAPPROFD_DIRECTORY";
inline constexpr char kSystemDirectory[] = "/run/heapprofd";
inline constexpr char kUserSubdirectory[] = "/heapprofd";   // of XDG_RUNTIME_DIR
inline constexpr char kUserFallback[] = "/tmp/heapprofd-";  // and the user id
inline constexpr char kSocketName[] = "/socket";
inline constexpr char kWakeName[] = "/wake";

// A program started with this set to 1 waits in its first allocation until a session
// wants it.
inline constexpr char kBlockingVariable[] = "PERFETTO_HEAPPROFD_BLOCKING_INIT";

struct WakePage {
  std::atomic<uint32_t> generation;  // +1 for every session that begins
};

inline constexpr size_t kWakePageSize = 4096;

}  // namespace heapprofd
