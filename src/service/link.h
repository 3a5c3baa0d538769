// What a service's front desk (front_desk.h) and the engine of one user say to each
// other: messages over a pair of sockets. The engine of a user is as little to be trusted
// as he is: whatever comes from it is bounded, and means his own affairs only.
#pragma once

#include <cstdint>
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
  kLeave = 5,    // it is idle, and nothing is on its way to it
  kWatcher = 7,  // answers kWatch: with GateEnds, or text: why not
  kKnown = 6,    // answers kRecordings: from now on programs come

  // From an engine.
  kPassOn = 16,      // with a program's connection: nobody here wants it
  kTakenHere = 17,   // number: a process that a recording here has, and its user << 32
  kRecordings = 18,  // number: of those that run here; text: "+" when one has just begun
  kDumpOthers = 19,  // text: a label; from root's engine alone
  kWatch = 20,       // it wants to see programs start
  kIdle = 21,        // number: of visitors that came here so far
};

struct LinkMessage {
  LinkType type{};
  uint64_t number = 0;
  std::string text = {};  // at most kMaxLinkText bytes
  std::vector<ScopedFd> fds = {};
};

inline constexpr size_t kMaxLinkText = 1024;

class Link {
 public:
  explicit Link(ScopedFd fd) : fd_(std::move(fd)) {}

  static Result<std::pair<Link, Link>> Pair();

  int fd() const { return fd_.get(); }

  // Does not wait. False: the other side has no room now. What it will never read, since
  // it is gone, counts as sent.
  bool Send(const LinkMessage& message, const std::vector<int>& fds = {}) const;

  // nullopt: nothing more now. kUnavailable: the other side is gone. kCorrupt: it talks
  // nonsense.
  Result<std::optional<LinkMessage>> Receive() const;

 private:
  ScopedFd fd_;
};

// A visitor as a message, and back: who he is, is asked of the kernel again.
bool SendVisitor(const Link& link, const Visitor& visitor, uint64_t others);
Result<Visitor> TakeVisitor(LinkMessage message);

}  // namespace heapprofd
