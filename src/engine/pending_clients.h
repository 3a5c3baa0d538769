// Connections that were accepted and have not said yet what they are there for. Everybody
// at the socket may be hostile: nothing ever waits for a peer, and silence costs others
// nothing.
//
// What there is room for is shared out by the user that the kernel names. A user with a
// full share loses the oldest silent connection for each new one: an honest client speaks
// at once, so it is not the one to go. Clients that have spoken are served by turns of
// their users, so that no user waits for another user's crowd.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <utility>
#include <vector>

#include "engine/untrusted_socket.h"

namespace heapprofd {

class PendingClients {
 public:
  struct Limits {
    size_t all;            // connections; this process's own user may have `of_user` more
    size_t of_user;        // of one user other than this process's own
    uint64_t patience_ns;  // until a connection has spoken
    size_t per_turn;       // served at once: those that are recorded already must not
                           // wait for a crowd that comes
    uint64_t turn_ns = 20'000'000;  // to take in a crowd, and again to serve it
  };

  struct Client {
    UntrustedSocket fd;  // does not block
    ucred peer;          // as the kernel told it when the connection was made
    uint64_t deadline_ns;
    bool is_told_to_wait;
  };

  // `magic`: the first word of what the client says, which is there to be read, as a
  // whole or never. The handler may take the descriptor; otherwise it is closed
  // afterwards.
  using Handler = std::function<void(Client& client, uint64_t magic)>;

  static constexpr size_t kMaxTurnedAway = 256;

  explicit PendingClients(const Limits& limits) : limits_(limits) {}

  // Takes in whoever waits at the listening socket, as many as the time allows and one in
  // any case. Only root lets other users in. True: the time was up.
  bool Accept(int listener);

  // Hands those over that have spoken, by turns of their users and each user's in order
  // of arrival; closes those whose time is up. True: some had to be left for the next
  // turn; they know that they were heard.
  bool Serve(const Handler& handler);

  // Gives the processes that connected when there was no room for them, since the last
  // call; kMaxTurnedAway at most.
  std::vector<pid_t> TakeTurnedAway() { return std::exchange(turned_away_, {}); }

  void AddTo(std::vector<pollfd>* fds) const;

  // Until the first one's time is up; INT_MAX: there is none.
  int MillisecondsToDeadline() const;

  bool empty() const { return clients_.empty(); }

  size_t size() const { return clients_.size(); }

  void clear();

  // In a child: the connections are the parent's.
  void LeaveToParent();

 private:
  struct Entry;
  using Entries = std::list<Entry>;
  using Iterator = Entries::iterator;

  struct Entry {
    Client client;
    std::list<Iterator>::iterator of_user;  // where by_user_ has it
  };

  struct Spoken {
    Iterator entry;
    uint64_t magic;
  };

  // Those that have spoken, by user.
  using SpokenByUser = std::map<uid_t, std::deque<Spoken>>;

  void Add(UntrustedSocket fd, const ucred& peer);
  void TurnAway(pid_t pid);
  bool MakeRoom(uid_t user);
  bool RemoveOldestOf(uid_t user);
  Iterator Remove(Iterator client);
  SpokenByUser Hear();
  SpokenByUser::iterator NextUser(SpokenByUser* spoken, bool is_first) const;

  Limits limits_;
  // In order of arrival, all and each user's.
  Entries clients_;
  std::map<uid_t, std::list<Iterator>> by_user_;
  uid_t served_last_ = 0;
  std::vector<pid_t> turned_away_;
};

}  // namespace heapprofd
