// What the exec gate says to its owner and to those that watch, and they to it. What it
// says is one message in a packet of a SOCK_SEQPACKET socket each, and so is what its
// owner says. A watcher has a pipe, since through a socket he could send descriptors, and
// whoever has one in his queue waits for as long as its file likes when it is closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heapprofd {

// A program waits for its permission so long at most, whatever becomes of those who
// watch.
inline constexpr uint64_t kMaxHoldNs = 300'000'000;

// The file systems to be watched are found in this time, or not at all.
inline constexpr uint64_t kMaxScanNs = 3'000'000'000;

// A packet from where mounts come from, without one: those of a process could not be
// found out in time.
inline constexpr std::string_view kMountsLeftOut = "-";

// From the gate's owner: a recording wants to watch. With three descriptors: its socket,
// its pipe, and the socket that mounts come from (mount_scan.h).
inline constexpr std::string_view kWatchRequest = "w";

// The gate's answer to that. The first one, without a request, is about its start.
struct GateReply {
  int32_t error;  // an errno; 0: all is well
};

// From the gate, to a watcher.
enum class GateNews : uint32_t {
  kReady,    // from now on; text: what is not watched, for the user, if anything
  kRefused,  // text: why; the end of the connection
  kHeld,     // number: serial of this exec; text: path of what is executed
  kTaken,    // the same for one that another watcher got; number is 0
  kMissed,   // number: how many may have matched, but there was no room to hold them
};

struct GateMessage {  // followed by the text
  GateNews news;
  int32_t tid = 0;
  uint64_t number = 0;
  uint64_t until_ns = 0;  // kHeld: it has its permission then (MonotonicNs)
};

inline constexpr size_t kMaxGateText = 4096;

// To the gate. First comes the size of ExecNames::Encode (a GateSize) and that, then
// GateAnswers.
using GateSize = uint32_t;

// An exec has to be done with once, and may be allowed before; more is said
// by nobody honest.
enum class GateWish : uint32_t {
  kAllow,
  kDone,  // the same, and the thread's next exec is another one
};

struct GateAnswer {
  GateWish wish;
  uint32_t after_us;  // kAllow: its permission is given then
  uint64_t serial;
};

inline constexpr uint32_t kAnswersPerExec = 4;

}  // namespace heapprofd
