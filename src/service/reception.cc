#include "service/reception.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "wire/control.h"
#include "wire/handshake.h"

namespace heapprofd {
namespace {

constexpr uint64_t kPatienceNs = 4'000'000'000;  // until somebody has said what he wants
constexpr size_t kMaxWaiting = 16'384;
constexpr size_t kMaxWaitingOfUser = kMaxWaiting / 8;
constexpr int kAcceptsPerTurn = 256;
constexpr int kEventsPerTurn = 64;

enum class Word : uint8_t { kNotYet, kNonsense, kProgram, kCommand };

// Honest ones say it in one piece.
Word FirstWord(const Visitor& visitor) {
  uint64_t magic = 0;
  const ssize_t got =
      recv(visitor.connection.get(), &magic, sizeof(magic), MSG_PEEK | MSG_DONTWAIT);
  if (got < 0)
    return errno == EAGAIN || errno == EINTR ? Word::kNotYet : Word::kNonsense;
  if (got != static_cast<ssize_t>(sizeof(magic)))
    return Word::kNonsense;
  if (magic == kControlMagic)
    return Word::kCommand;
  return magic == kHandshakeMagic ? Word::kProgram : Word::kNonsense;
}

}  // namespace

Result<std::unique_ptr<Reception>> Reception::Open(const std::string& path,
                                                   ScopedFd listener) {
  std::unique_ptr<Reception> reception(new Reception(path));
  reception->listener_ = std::move(listener);
  if (!reception->listener_.valid())
    HPD_TRY(reception->Listen());
  reception->events_ = ScopedFd(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{.events = EPOLLIN, .data = {.fd = reception->listener_.get()}};
  if (!reception->events_.valid() || epoll_ctl(reception->events_.get(), EPOLL_CTL_ADD,
                                               reception->listener_.get(), &event) != 0)
    return Status::FromErrno("cannot listen on " + path, errno);
  return reception;
}

// Whoever comes later need not wait for an answer.
Reception::~Reception() {
  if (owns_socket_)
    unlink(path_.c_str());
}

Status Reception::Listen() {
  listener_ = ScopedFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!listener_.valid() || path_.size() >= sizeof(address.sun_path))
    return Status(StatusCode::kInvalidArgument,
                  "cannot listen on " + path_ +
                      ": the path is too long; name a shorter "
                      "one with --directory");
  memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
  unlink(path_.c_str());  // left by a service that was killed: the lock is ours
  if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
          0 ||
      chmod(path_.c_str(), geteuid() == 0 ? 0666 : 0600) != 0 ||
      listen(listener_.get(), SOMAXCONN) != 0)
    return Status::FromErrno("cannot listen on " + path_, errno);
  owns_socket_ = true;
  return {};
}

int Reception::MillisecondsToNext() const {
  constexpr uint64_t kNsPerMs = 1'000'000;
  if (waiting_.empty())
    return -1;
  const uint64_t now = MonotonicNs();
  const uint64_t deadline = waiting_.front().deadline_ns;
  return deadline <= now ? 0 : static_cast<int>((deadline - now) / kNsPerMs + 1);
}

// Whoever finds no room is sent away at once, and may come again.
void Reception::Accept() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    ScopedFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid())
      return;
    Result<Visitor> visitor = Identify(std::move(fd));
    if (!visitor.ok())
      continue;
    const uid_t user = visitor.value().rights.user;
    const auto known = count_of_user_.find(user);
    const size_t of_user = known != count_of_user_.end() ? known->second : 0;
    const bool has_room =
        waiting_.size() < kMaxWaiting && (user == 0 || of_user < kMaxWaitingOfUser);
    if (!has_room || (geteuid() != 0 && user != geteuid()))
      continue;
    const int connection = visitor.value().connection.get();
    epoll_event event{.events = EPOLLIN, .data = {.fd = connection}};
    if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, connection, &event) != 0)
      continue;
    ++count_of_user_[user];
    waiting_.push_back({.visitor = std::move(visitor).value(),
                        .deadline_ns = MonotonicNs() + kPatienceNs});
    places_[connection] = std::prev(waiting_.end());
  }
}

Visitor Reception::Take(Place place) {
  Visitor visitor = std::move(place->visitor);
  epoll_ctl(events_.get(), EPOLL_CTL_DEL, visitor.connection.get(), nullptr);
  places_.erase(visitor.connection.get());
  const auto count = count_of_user_.find(visitor.rights.user);
  if (--count->second == 0)
    count_of_user_.erase(count);
  waiting_.erase(place);
  return visitor;
}

void Reception::Serve(const std::function<void(Visitor)>& admit) {
  std::array<epoll_event, kEventsPerTurn> events{};
  const int count = epoll_wait(events_.get(), events.data(), kEventsPerTurn, 0);
  for (int i = 0; i < count; ++i) {
    const auto place = places_.find(events[static_cast<size_t>(i)].data.fd);
    if (place == places_.end())
      continue;  // the listener
    const Word word = FirstWord(place->second->visitor);
    if (word == Word::kNotYet)
      continue;
    Visitor visitor = Take(place->second);
    visitor.is_command = word == Word::kCommand;
    if (word != Word::kNonsense)
      admit(std::move(visitor));
  }
  Accept();
  const uint64_t now = MonotonicNs();
  while (!waiting_.empty() && waiting_.front().deadline_ns <= now)
    Take(waiting_.begin());
}

}  // namespace heapprofd
