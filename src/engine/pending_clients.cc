#include "engine/pending_clients.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <iterator>

#include "base/clock.h"
#include "engine/bare_welcome.h"
#include "engine/tsc_clock.h"
#include "wire/handshake.h"

namespace heapprofd {
namespace {

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

bool PendingClients::Accept(int listener) {
  const uint64_t end_ns = MonotonicNs() + limits_.accept_ns;
  do {
    ScopedFd accepted(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!accepted.valid())
      return false;
    UntrustedSocket fd(std::move(accepted));
    ucred peer{};
    if (PeerOf(fd.get(), &peer) && (geteuid() == 0 || peer.uid == geteuid()) &&
        MakeRoom(peer.uid))
      Add(std::move(fd), peer);
  } while (MonotonicNs() < end_ns);
  return true;
}

void PendingClients::Add(UntrustedSocket fd, const ucred& peer) {
  clients_.push_back({.client = {.fd = std::move(fd),
                                 .peer = peer,
                                 .deadline_ns = MonotonicNs() + limits_.patience_ns,
                                 .is_told_to_wait = false},
                      .of_user = {}});
  std::list<Iterator>& same = by_user_[peer.uid];
  clients_.back().of_user = same.insert(same.end(), std::prev(clients_.end()));
}

bool PendingClients::MakeRoom(uid_t user) {
  const auto same = by_user_.find(user);
  const bool has_share = user != geteuid() && same != by_user_.end() &&
                         same->second.size() >= limits_.of_user;
  if (has_share)
    return RemoveOldestOf(user);
  if (clients_.size() < limits_.all)
    return true;
  const auto most = std::max_element(by_user_.begin(), by_user_.end(),
                                     [](const auto& one, const auto& other) {
                                       return one.second.size() < other.second.size();
                                     });
  return RemoveOldestOf(most->first);
}

// False: it has spoken and waits for its turn only.
bool PendingClients::RemoveOldestOf(uid_t user) {
  const auto same = by_user_.find(user);
  if (same == by_user_.end())
    return false;
  const Iterator oldest = same->second.front();
  uint64_t word = 0;
  if (FirstWord(oldest->client.fd.get(), &word) == Speech::kWord)
    return false;
  Remove(oldest);
  return true;
}

PendingClients::Iterator PendingClients::Remove(Iterator entry) {
  const auto same = by_user_.find(entry->client.peer.uid);
  same->second.erase(entry->of_user);
  if (same->second.empty())
    by_user_.erase(same);
  return clients_.erase(entry);
}

bool PendingClients::Serve(const Handler& handler) {
  const uint64_t now = MonotonicNs();
  size_t served = 0;
  bool is_behind = false;
  for (auto entry = clients_.begin(); entry != clients_.end();) {
    Client& client = entry->client;
    uint64_t magic = 0;
    const Speech speech = FirstWord(client.fd.get(), &magic);
    if (speech == Speech::kNone && client.deadline_ns >= now) {
      ++entry;
      continue;
    }
    if (speech == Speech::kWord && served == limits_.per_turn) {
      is_behind = true;
      if (magic == kHandshakeMagic && !std::exchange(client.is_told_to_wait, true))
        SendBareWelcome(client.fd.get(), WelcomeStatus::kWait);
      ++entry;
      continue;
    }
    if (speech == Speech::kWord) {
      ++served;
      handler(client, magic);
    }
    entry = Remove(entry);
  }
  return is_behind;
}

void PendingClients::AddTo(std::vector<pollfd>* fds) const {
  for (const Entry& entry : clients_)
    fds->push_back({.fd = entry.client.fd.get(), .events = POLLIN, .revents = 0});
}

int PendingClients::MillisecondsToDeadline() const {
  if (clients_.empty())
    return INT_MAX;
  const uint64_t now = MonotonicNs();
  const uint64_t first = clients_.front().client.deadline_ns;
  return first > now ? static_cast<int>((first - now) / kNsPerMs + 1) : 0;
}

void PendingClients::clear() {
  clients_.clear();
  by_user_.clear();
}

void PendingClients::LeaveToParent() {
  for (Entry& entry : clients_)
    entry.client.fd.Release();
  clear();
}

}  // namespace heapprofd
