// One end of a control connection (wire/control.h): sends messages, and puts received
// ones together from whatever pieces arrive. Everything received is bounded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "wire/control.h"

namespace heapprofd {

struct ControlMessage {
  ControlType type{};
  std::string payload;
  std::vector<ScopedFd> fds;
};

// Descriptors stay the caller's. Fails rather than waits when the other side does not
// read.
Status SendControlMessage(int fd,
                          ControlType type,
                          const std::string& payload,
                          const std::vector<int>& fds);

class ControlChannel {
 public:
  explicit ControlChannel(ScopedFd fd) : fd_(std::move(fd)) {}

  // kNotFound: nobody listens at `path`. kUnavailable: somebody who is neither this user
  // nor root.
  static Result<ControlChannel> Connect(const std::string& path);

  int fd() const { return fd_.get(); }

  // See SendControlMessage.
  Status Send(ControlType type,
              const std::string& payload,
              const std::vector<int>& fds = {}) {
    return SendControlMessage(fd_.get(), type, payload, fds);
  }

  // Reads what is there without waiting. nullopt: the message is not complete yet.
  // kUnavailable: the other side has closed. kCorrupt: it talks nonsense.
  Result<std::optional<ControlMessage>> Receive();

  // The next message, waiting at most `timeout_ms` (-1: for ever) for each piece of it,
  // and no longer than until `stop_fd`, if there is one, is readable: kTryAgain then, else
  // as Receive().
  Result<ControlMessage> Wait(int timeout_ms, int stop_fd = -1);

 private:
  Result<std::optional<ControlMessage>> TakeMessage();

  ScopedFd fd_;
  std::string received_;
  std::vector<ScopedFd> received_fds_;
};

}  // namespace heapprofd
