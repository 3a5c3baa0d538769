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
  const uint64_t end_ns = MonotonicNs() + limits_.turn_ns;
  do {
    ScopedFd accepted(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!accepted.valid())
      return false;
    UntrustedSocket fd(std::move(accepted));
    ucred peer{};
    if (!PeerOf(fd.get(), &peer) || (geteuid() != 0 && peer.uid != geteuid()))
      continue;
    if (MakeRoom(peer.uid))
      Add(std::move(fd), peer);
    else
      TurnAway(peer.pid);
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

// A process that connects again and again is noted once.
void PendingClients::TurnAway(pid_t pid) {
  if (turned_away_.size() < kMaxTurnedAway &&
      (turned_away_.empty() || turned_away_.back() != pid))
    turned_away_.push_back(pid);
}

bool PendingClients::MakeRoom(uid_t user) {
  const auto same = by_user_.find(user);
  const bool is_own = user == geteuid();
  const bool has_share =
      !is_own && same != by_user_.end() && same->second.size() >= limits_.of_user;
  if (has_share)
    return RemoveOldestOf(user);
  if (clients_.size() < limits_.all + (is_own ? limits_.of_user : 0))
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

// Closes those that mean nothing, or whose time is up.
PendingClients::SpokenByUser PendingClients::Hear() {
  const uint64_t now = MonotonicNs();
  SpokenByUser spoken;
  for (auto entry = clients_.begin(); entry != clients_.end();) {
    uint64_t magic = 0;
    const Speech speech = FirstWord(entry->client.fd.get(), &magic);
    const bool is_over = speech == Speech::kOver ||
                         (speech == Speech::kNone && entry->client.deadline_ns < now);
    if (speech == Speech::kWord)
      spoken[entry->client.peer.uid].push_back({.entry = entry, .magic = magic});
    entry = is_over ? Remove(entry) : std::next(entry);
  }
  return spoken;
}

// The process's own user is the first in each turn: nothing of others keeps it out.
PendingClients::SpokenByUser::iterator PendingClients::NextUser(SpokenByUser* spoken,
                                                                bool is_first) const {
  const auto own = is_first ? spoken->find(geteuid()) : spoken->end();
  if (own != spoken->end())
    return own;
  const auto next = spoken->upper_bound(served_last_);
  return next != spoken->end() ? next : spoken->begin();
}

bool PendingClients::Serve(const Handler& handler) {
  SpokenByUser spoken = Hear();
  const uint64_t end_ns = MonotonicNs() + limits_.turn_ns;
  for (size_t served = 0; !spoken.empty() && served < limits_.per_turn; ++served) {
    if (served > 0 && MonotonicNs() >= end_ns)
      break;
    const auto turn = NextUser(&spoken, served == 0);
    if (served > 0 || turn->first != geteuid())
      served_last_ = turn->first;
    const Spoken next = turn->second.front();
    turn->second.pop_front();
    if (turn->second.empty())
      spoken.erase(turn);
    handler(next.entry->client, next.magic);
    Remove(next.entry);
  }
  for (auto& [user, left] : spoken) {
    for (const Spoken& one : left) {
      Client& client = one.entry->client;
      if (one.magic == kHandshakeMagic && !std::exchange(client.is_told_to_wait, true))
        SendBareWelcome(client.fd.get(), WelcomeStatus::kWait);
    }
  }
  return !spoken.empty();
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
