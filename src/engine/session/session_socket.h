// Where a session listens: the socket at which programs that have our library
// report, in a directory of its own that goes with it.
//
// One thread: the session's. Everybody at the socket may be hostile
// (pending_clients.h).
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "engine/pending_clients.h"
#include "wire/handshake.h"

namespace heapprofd {

class SessionSocket {
 public:
  // What is said there, each in one piece. A program that says Hello waits for
  // its Welcome.
  struct Listener {
    std::function<void(const Hello& hello, const PendingClients::Client& client)> hello;
    std::function<void(const ExecNotice& notice, pid_t sender)> exec_notice;
  };

  // What else arrives: a connection whose first word is kControlMagic
  // (wire/control.h).
  using ControlHandler = std::function<void(ScopedFd connection)>;

  // In a fresh directory that only this user can write to. Root's can be used
  // by everybody who knows the name.
  static Result<std::unique_ptr<SessionSocket>> Create(Listener listener);

  ~SessionSocket();
  SessionSocket(const SessionSocket&) = delete;
  SessionSocket& operator=(const SessionSocket&) = delete;

  const std::string& path() const { return path_; }

  void set_control_handler(ControlHandler handler) {
    control_handler_ = std::move(handler);
  }

  void AddTo(std::vector<pollfd>* fds) const;

  // Until Serve should be called in any case; INT_MAX: nobody waits.
  int MillisecondsToNext() const {
    return is_behind_ ? 0 : clients_.MillisecondsToDeadline();
  }

  // Hears those who have spoken. True: there are more, who wait for the next turn.
  bool Serve();

  // The same for all that was said until now; whoever asks later does not wait
  // for an answer.
  void Close();

 private:
  // Those who have a share of their own are the users that programs of root's
  // session have become.
  static constexpr PendingClients::Limits kLimits = {
      .all = 1024, .of_user = 128, .patience_ns = 4'000'000'000, .per_turn = 16};

  explicit SessionSocket(Listener listener) : listener_(std::move(listener)) {}

  Status Listen();
  Status OpenToOtherUsers();
  void Hear(PendingClients::Client& client, uint64_t magic);

  Listener listener_;
  ControlHandler control_handler_;
  ScopedFd socket_;
  PendingClients clients_{kLimits};
  bool is_behind_ = false;        // somebody who has spoken waits for his turn
  std::string parent_directory_;  // empty: there is none
  std::string directory_;
  std::string path_;
};

}  // namespace heapprofd
