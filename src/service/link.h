// What a service's front desk (front_desk.h) and the engine of one user say to each
// other: messages over a pair of sockets. The engine of a user is as little to be trusted
// as he is: whatever comes from it is bounded, and means his own affairs only.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "service/visitor.h"

namespace heapprofd {

enum class LinkType : uint32_t {
  // To an engine.
  kVisitor = 1,  // with its connection and its process; number: all others' recordings
  kTaken = 2,    // number: a process that another user's recording has
  kDump = 3,     // text: a label; all recordings get a dump
  kLeave = 4,    // it is idle, and nothing is on its way to it
  kKnown = 5,    // answers kRecordings: from now on programs come
  kWatcher = 6,  // answers kWatch: with GateEnds, or text: why not
  kMissed = 7,   // number: a process that it had no room or no time for

  // From an engine, always without descriptors. The number of the first three is that of
  // a visitor, a program: they are counted as they come, from one.
  kPassOn = 16,      // nobody here wants it
  kTakenHere = 17,   // a recording here has it
  kAnswered = 18,    // it was sent away
  kRecordings = 19,  // number: of those that run here; text: "+" when one has just begun
  kDumpOthers = 20,  // text: a label; from root's engine alone
  kWatch = 21,       // it wants to see programs start
  kIdle = 22,        // number: of visitors that came here so far
};

struct LinkMessage {
  LinkType type{};
  uint64_t number = 0;
  std::string text = {};  // at most kMaxLinkText bytes
  std::vector<ScopedFd> fds = {};
};

inline constexpr size_t kMaxLinkText = 1024;
inline constexpr size_t kMaxUnsent = 1024;  // messages

class Link {
 public:
  explicit Link(ScopedFd fd) : fd_(std::move(fd)) {}

  // The second one, an engine's, can send no descriptors.
  static Result<std::pair<Link, Link>> Pair();

  int fd() const { return fd_.get(); }

  // Does not wait. False: the other side has no room now, or something else is to arrive
  // before. What it will never read, since it is gone, counts as sent.
  bool Send(const LinkMessage& message, const std::vector<int>& fds = {}) const;

  // Sends it and its descriptors now or, as soon as there is room, by SendRest. False:
  // too much waits already, since the other side does not read; it is best given up.
  bool Say(LinkMessage message);

  // True: nothing waits.
  bool SendRest();

  // nullopt: nothing more now. kUnavailable: the other side is gone. kCorrupt: it talks
  // nonsense.
  Result<std::optional<LinkMessage>> Receive() const;

 private:
  bool SendNow(const LinkMessage& message, const std::vector<int>& fds) const;

  ScopedFd fd_;
  std::deque<LinkMessage> unsent_;
};

// A visitor as a message, and back: who he is, is asked of the kernel again.
bool SendVisitor(const Link& link, const Visitor& visitor);
Result<Visitor> TakeVisitor(LinkMessage message);

}  // namespace heapprofd
