#include "engine/pending_clients.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "engine/tsc_clock.h"
#include "wire/handshake.h"

namespace heapprofd {
namespace {

// Of one turn. A crowd in the socket's queue is taken in whole, one that keeps coming
// does not hold the turn up.
constexpr int kAcceptedAtOnce = 4096;
constexpr uint64_t kNsPerMs = 1'000'000;

bool PeerOf(int fd, ucred* peer) {
  socklen_t length = sizeof(*peer);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &length) == 0 && peer->pid > 0;
}

enum class Speech : uint8_t {
  kNone,
  kWord,
  kOver,  // closed, or fewer bytes than anybody honest says in one piece
};

Speech FirstWord(int fd, uint64_t* word) {
  const ssize_t got = recv(fd, word, sizeof(*word), MSG_PEEK | MSG_DONTWAIT);
  if (got == static_cast<ssize_t>(sizeof(*word)))
    return Speech::kWord;
  const bool is_silent =
      got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  return is_silent ? Speech::kNone : Speech::kOver;
}

}  // namespace

void PendingClients::Accept(int listener) {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    ScopedFd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid())
      return;
    ucred peer{};
    if (!PeerOf(fd.get(), &peer) || (geteuid() != 0 && peer.uid != geteuid()) ||
        !MakeRoom(peer.uid))
      continue;
    ++counts_[peer.uid];
    clients_.push_back({.fd = std::move(fd),
                        .peer = peer,
                        .deadline_ns = MonotonicNs() + limits_.patience_ns,
                        .is_told_to_wait = false});
  }
}

bool PendingClients::MakeRoom(uid_t user) {
  const auto count = counts_.find(user);
  const bool has_share =
      user != geteuid() && count != counts_.end() && count->second >= limits_.of_user;
  if (has_share)
    return RemoveOldestOf(user);
  if (clients_.size() < limits_.all)
    return true;
  const auto most = std::max_element(
      counts_.begin(), counts_.end(),
      [](const auto& one, const auto& other) { return one.second < other.second; });
  return RemoveOldestOf(most->first);
}

// False: it has spoken and waits for its turn only.
bool PendingClients::RemoveOldestOf(uid_t user) {
  const auto oldest =
      std::find_if(clients_.begin(), clients_.end(),
                   [user](const Client& client) { return client.peer.uid == user; });
  uint64_t word = 0;
  if (oldest == clients_.end() || FirstWord(oldest->fd.get(), &word) == Speech::kWord)
    return false;
  Remove(oldest);
  return true;
}

PendingClients::Iterator PendingClients::Remove(Iterator client) {
  const auto count = counts_.find(client->peer.uid);
  if (--count->second == 0)
    counts_.erase(count);
  return clients_.erase(client);
}

bool PendingClients::Serve(const Handler& handler) {
  const uint64_t now = MonotonicNs();
  size_t served = 0;
  bool is_behind = false;
  for (auto client = clients_.begin(); client != clients_.end();) {
    uint64_t magic = 0;
    const Speech speech = FirstWord(client->fd.get(), &magic);
    if (speech == Speech::kNone && client->deadline_ns >= now) {
      ++client;
      continue;
    }
    if (speech == Speech::kWord && served == limits_.per_turn) {
      is_behind = true;
      if (magic == kHandshakeMagic && !std::exchange(client->is_told_to_wait, true))
        TellToWait(client->fd.get());
      ++client;
      continue;
    }
    if (speech == Speech::kWord) {
      ++served;
      handler(*client, magic);
    }
    client = Remove(client);
  }
  return is_behind;
}

void PendingClients::TellToWait(int connection) {
  const Welcome wait{.magic = kHandshakeMagic,
                     .version = kWireVersion,
                     .status = WelcomeStatus::kWait,
                     .ring_size = 0,
                     .seed = 0};
  send(connection, &wait, sizeof(wait), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void PendingClients::AddTo(std::vector<pollfd>* fds) const {
  for (const Client& client : clients_)
    fds->push_back({.fd = client.fd.get(), .events = POLLIN, .revents = 0});
}

int PendingClients::MillisecondsToDeadline() const {
  if (clients_.empty())
    return INT_MAX;
  const uint64_t now = MonotonicNs();
  const uint64_t first = clients_.front().deadline_ns;
  return first > now ? static_cast<int>((first - now) / kNsPerMs + 1) : 0;
}

void PendingClients::clear() {
  clients_.clear();
  counts_.clear();
}

}  // namespace heapprofd
