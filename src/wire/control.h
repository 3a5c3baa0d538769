// Messages of people's commands to an engine, over the sockets where clients report:
// `heap_profile mark`, and recordings that a service runs for somebody.
//
//   {ControlHeader, payload_size bytes}, in both directions. Descriptors travel with the
//   header. The engine takes pid and uid from the socket (SO_PEERCRED).
#pragma once

#include <cstddef>
#include <cstdint>

namespace heapprofd {

inline constexpr uint64_t kControlMagic = 0x3130746370616568;  // "heapct01"
inline constexpr size_t kMaxControlPayload = size_t{1} << 20;  // bytes

enum class ControlType : uint32_t {
  // Requests.
  kMark = 1,     // payload: the label of a dump of this connection's recording, or of all
                 // that belong to the caller
  kStart = 2,    // payload: StartRequest (proto/control.proto); descriptors: the
                 // trace, which is a regular file, standard error, and, where it names a
                 // directory, that. Only after kReady. The recording ends when the
                 // connection is closed.
  kStop = 3,     // ends the recording that this connection has started
  kPrepare = 4,  // kStart is to follow. Whoever listens takes no descriptors until he
                 // knows whose they are
  // Answers.
  kDone = 16,         // payload: exit code, " whole" behind it if the trace is
  kFailed = 17,       // payload: an error message
  kStarted = 18,      // clients are being served
  kUnavailable = 21,  // as kFailed, but the request was in order
  kNote = 20,    // something that the caller should know; payload: one line. May come
                 // before any other answer
  kStatus = 22,  // payload: one line about a recording that goes on
  kDumped = 24,  // all processes of a recording that goes on have been dumped, on request
                 // or by its schedule; payload: how often until now
  kMarked = 19,  // payload: the number of recordings that have a new dump
  kReady = 23,   // answers kPrepare: descriptors may be sent
};

struct ControlHeader {
  uint64_t magic;
  ControlType type;
  uint32_t payload_size;
};

static_assert(sizeof(ControlHeader) == 16);

}  // namespace heapprofd
