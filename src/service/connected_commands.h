// The commands that are connected to a service: how many may be, how long one may take
// to say what it wants, and how much of it is heard in a turn. What they mean is for
// others. One thread; nothing waits for a command.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "service/control_channel.h"
#include "service/visitor.h"

namespace heapprofd {

struct ConnectedCommand {
  size_t serial;  // of all that ever came
  ControlChannel channel;
  uint64_t deadline_ns;        // to ask for something, unless it has a recording
  bool has_recording = false;  // until it is finished, with which the connection goes
  bool awaits_start = false;   // kStarted is owed to it

  // Once, when it is owed.
  void TellStarted();
};

class ConnectedCommands {
 public:
  // False: the connection is to be closed.
  using Handle = std::function<bool(ConnectedCommand&, ControlMessage)>;
  // A command with this number is gone.
  using Gone = std::function<void(size_t serial)>;

  // Refuses it when there are too many.
  void Admit(Visitor visitor);

  bool is_empty() const { return commands_.empty(); }

  // What becomes readable when one says something.
  void AddTo(std::vector<pollfd>* fds) const;

  // Until Serve should be called in any case; -1: no need.
  int MillisecondsToNext() const;

  // A turn. `handle` may admit more of them.
  void Serve(const Handle& handle, const Gone& gone);

  // To all to whom it is owed.
  void TellStarted();

  // nullptr: it is gone.
  ConnectedCommand* Find(size_t serial) const;

  void Close(size_t serial);

  // In a child: the connections are the parent's.
  void LeaveToParent() { commands_.clear(); }

  // How long a command may take to say what it wants, from when it came or was last
  // answered.
  void set_patience(uint64_t patience_ns) { patience_ns_ = patience_ns; }

 private:
  // False: it is to be closed.
  bool Hear(ConnectedCommand& command, const Handle& handle);

  std::vector<std::unique_ptr<ConnectedCommand>> commands_;
  bool is_behind_ = false;  // somebody's message waits in here, not in a socket
  uint64_t patience_ns_ = 4'000'000'000;
  size_t next_serial_ = 1;
};

}  // namespace heapprofd
