#include "attach/gate/gate_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/fd_path.h"

namespace heapprofd {
namespace {

constexpr uint64_t kGatePatienceNs = 10'000'000'000;  // with a gate that is alive
constexpr int kGateLookMs = 100;
constexpr int kBetweenMs = 5;

}  // namespace

bool OpenGateEnds(GateEnds* watchers, GateEnds* gates) {
  std::array<int, 2> sockets{-1, -1};
  std::array<int, 2> pipe{-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) != 0)
    return false;
  watchers->socket = ScopedFd(sockets[0]);
  gates->socket = ScopedFd(sockets[1]);
  if (pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    return false;
  gates->pipe = ScopedFd(pipe[0]);
  const ScopedFd writer(pipe[1]);
  // Can also be read: writing to it is no SIGPIPE when the gate has ended.
  const std::string path = FdPath(writer.get());
  watchers->pipe = ScopedFd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  return watchers->pipe.valid() && shutdown(gates->socket.get(), SHUT_RD) == 0;
}

Status GateLink::Begin(const ExecNames& names,
                       std::string* note,
                       const std::function<void()>& between) {
  const std::string bytes = names.Encode();
  if (!ExecNames::Decode(bytes))
    return Status(StatusCode::kUnavailable,
                  "cannot watch for new processes: too many names are given; use a "
                  "pattern with *");
  const uint64_t deadline = MonotonicNs() + kGatePatienceNs;
  const auto size = static_cast<GateSize>(bytes.size());
  // One that refuses us has ended before it hears us, and has said why.
  const bool is_said =
      Say(std::string_view(reinterpret_cast<const char*>(&size), sizeof(size)),
          deadline) &&
      Say(bytes, deadline);
  static_cast<void>(is_said);
  while (is_open_ && MonotonicNs() < deadline) {
    Wait(kBetweenMs);
    between();
    const std::optional<News> news = Receive();
    if (!news)
      continue;
    if (news->message.news != GateNews::kReady)
      return Status(StatusCode::kUnavailable, news->text);
    *note = news->text;
    return {};
  }
  return {is_open_ ? StatusCode::kUnavailable : StatusCode::kTryAgain,
          std::string("cannot watch for new processes: the process that does so ") +
              (is_open_ ? "does not answer" : "has ended") +
              "; see what stops or kills heapprofd-gate"};
}

// False: it has ended, or took too long.
bool GateLink::Say(std::string_view bytes, uint64_t deadline_ns) const {
  while (!bytes.empty() && !HasEnded() && MonotonicNs() < deadline_ns) {
    const ssize_t written = write(pipe_.get(), bytes.data(), bytes.size());
    bytes.remove_prefix(written > 0 ? static_cast<size_t>(written) : 0);
    pollfd writable{.fd = pipe_.get(), .events = POLLOUT, .revents = 0};
    poll(&writable, 1, bytes.empty() ? 0 : kGateLookMs);
  }
  return bytes.empty();
}

void GateLink::Wait(int max_ms) const {
  pollfd readable{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  poll(&readable, 1, max_ms);
}

bool GateLink::HasEnded() const {
  pollfd ended{.fd = socket_.get(), .events = 0, .revents = 0};
  return poll(&ended, 1, 0) > 0 && (ended.revents & POLLHUP) != 0;
}

std::optional<GateLink::News> GateLink::Receive() {
  std::array<char, sizeof(GateMessage) + kMaxGateText> buffer;
  const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR))
    return std::nullopt;
  if (got < static_cast<ssize_t>(sizeof(GateMessage))) {
    is_open_ = false;
    return std::nullopt;
  }
  News news{};
  memcpy(&news.message, buffer.data(), sizeof(news.message));
  news.text.assign(buffer.data() + sizeof(GateMessage),
                   static_cast<size_t>(got) - sizeof(GateMessage));
  return news;
}

void GateLink::Allow(uint64_t serial, uint64_t after_ns) const {
  Answer({.wish = GateWish::kAllow,
          .after_us = static_cast<uint32_t>(after_ns / kNsPerUs),
          .serial = serial});
}

void GateLink::Done(uint64_t serial) const {
  Answer({.wish = GateWish::kDone, .after_us = 0, .serial = serial});
}

// When it cannot be said the gate is gone, or gives permission by itself.
void GateLink::Answer(const GateAnswer& answer) const {
  const ssize_t ignored = write(pipe_.get(), &answer, sizeof(answer));
  static_cast<void>(ignored);
}

void GateLink::Shutdown() const {
  shutdown(socket_.get(), SHUT_RDWR);
}

}  // namespace heapprofd
