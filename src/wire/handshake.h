// How a client meets its engine: one Hello, one Welcome with two memory files, over a
// Unix stream socket whose path is in the environment. The socket is closed at once; the
// target keeps no descriptor.
//
// The engine takes pid and uid from the socket (SO_PEERCRED), not from the Hello.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heapprofd {

// Value: the socket's path, or "<pid>,<path>" when only that process is to be profiled.
// Empty: the program must not be profiled, nor make any system call of ours.
inline constexpr char kSessionVariable[] = "HEAPPROFD_SESSION";

inline constexpr uint64_t kHandshakeMagic = 0x3130646670616568;  // "heapfd01"
inline constexpr uint32_t kWireVersion = 5;
inline constexpr size_t kMaxSocketPath = 107;  // sizeof(sockaddr_un::sun_path) - 1

// How long the client waits for the engine's answer before it goes on unprofiled; the
// second one is for a process whose engine is known to stand still: one that was not
// answered the last time, or is the child of such a one.
inline constexpr uint64_t kHandshakeTimeoutNs = 1'000'000'000;
inline constexpr uint64_t kShortHandshakeTimeoutNs = 50'000'000;
// The same, from the start, when the engine has said kWait: it is not stopped.
inline constexpr uint64_t kLongHandshakeTimeoutNs = 5'000'000'000;

// How the client comes to ask.
enum class ClientOrigin : uint32_t {
  kStartup = 0,    // the program has just begun
  kForkChild = 1,  // a forked child that did not exec; its parent was profiled
  kDormant = 2,    // the program has run for a while and was woken
};

// A second use of the socket: a profiled process says what it is about to execute, so
// that a program that then never reports (static, another environment) is known by name.
// Nothing is answered.
inline constexpr uint64_t kExecNoticeMagic = 0x3130636578657068;  // "hpexec01"

enum class ExecOutcome : uint32_t {
  kAttempt = 0,
  kFailed = 1,  // the process is still what it was
};

// Who sends the notice is about to become the program: its socket says which one that is,
// also across name spaces.
inline constexpr int32_t kExecOfSender = 0;

struct ExecNotice {
  uint64_t magic;
  uint32_t version;
  ExecOutcome outcome;
  uint64_t time_ns;        // CLOCK_MONOTONIC, before the attempt
  int32_t pid;             // the process that becomes the program: kExecOfSender, or
                           // a child of the sender, as that one's name space numbers it
  uint32_t keeps_session;  // 1: its environment holds what a client needs
  char program[224];       // as the process names it; cut, always ends with a zero
};

static_assert(sizeof(ExecNotice) == 256);

struct Hello {
  uint64_t magic;
  uint32_t version;
  ClientOrigin origin;
  uint64_t tsc;
};

enum class WelcomeStatus : uint32_t {
  kProfile = 0,  // two descriptors follow: EngineBlock, ClientBlock + ring
  kDecline = 1,  // not a target: stay dormant
  kWait = 2,     // many were there before; other Welcomes follow
};

struct Welcome {
  uint64_t magic;
  uint32_t version;
  WelcomeStatus status;
  uint64_t ring_size;  // bytes, a power of two
  uint64_t seed;       // for the client's random numbers, never 0
};

}  // namespace heapprofd
