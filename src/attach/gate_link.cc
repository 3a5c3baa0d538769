#include "attach/gate_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr uint64_t kPatienceNs = 10'000'000'000;  // with a gate that is alive
constexpr int kLookMs = 100;
constexpr uint64_t kNsPerUs = 1000;

}  // namespace

Status GateLink::Begin(const ExecNames& names, std::string* note) {
  const std::string bytes = names.Encode();
  if (!ExecNames::Decode(bytes))
    return Status(StatusCode::kUnavailable,
                  "cannot watch for new processes: too many names are given; use a "
                  "pattern with *");
  if (send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0)
    is_open_ = false;
  const uint64_t deadline = MonotonicNs() + kPatienceNs;
  while (is_open_ && MonotonicNs() < deadline) {
    Wait(kLookMs);
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

// When it cannot be said the gate is gone, or gives leave by itself.
void GateLink::Answer(const GateAnswer& answer) const {
  const ssize_t ignored =
      send(socket_.get(), &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
  static_cast<void>(ignored);
}

void GateLink::Shutdown() const {
  shutdown(socket_.get(), SHUT_RDWR);
}

}  // namespace heapprofd
