// The end of those that watch of a connection to the exec gate.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "attach/gate/exec_names.h"
#include "attach/gate/gate_messages.h"
#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

struct GateEnds {
  ScopedFd socket;  // from the gate
  ScopedFd pipe;    // to it
};

// A new connection. Whoever watches may be hostile; the gate's ends neither wait nor take
// descriptors. False: errno says why.
bool OpenGateEnds(GateEnds* watchers, GateEnds* gates);

class GateLink {
 public:
  struct News {
    GateMessage message;
    std::string text;
  };

  explicit GateLink(GateEnds ends)
      : socket_(std::move(ends.socket)), pipe_(std::move(ends.pipe)) {}

  // Says what to watch for, and waits until that is so. `note`: what is not watched.
  // kTryAgain: the gate has ended; there may be another one. `between`: called now and
  // then meanwhile.
  Status Begin(
      const ExecNames& names,
      std::string* note,
      const std::function<void()>& between = [] {});

  // Until there are news, or the time is over (-1: no limit).
  void Wait(int max_ms) const;

  // nullopt: there are none now, or the connection is over.
  std::optional<News> Receive();

  bool is_open() const { return is_open_; }

  // The same, for every thread: whether the other end is gone, though news of it may be
  // left.
  bool HasEnded() const;

  void Allow(uint64_t serial, uint64_t after_ns) const;
  void Done(uint64_t serial) const;

  // Ends the connection, on any thread: whoever waits sees it.
  void Shutdown() const;

  // In a child that was forked.
  void Close() {
    socket_.reset();
    pipe_.reset();
  }

 private:
  bool Say(std::string_view bytes, uint64_t deadline_ns) const;
  void Answer(const GateAnswer& answer) const;

  ScopedFd socket_;
  ScopedFd pipe_;
  bool is_open_ = true;
};

}  // namespace heapprofd
