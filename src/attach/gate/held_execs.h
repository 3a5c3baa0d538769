// The threads that wait for the gate's permission to execute a program, and those that
// have had it but whose watcher is not done with them: one exec asks several times.
//
// Nobody waits longer than kMaxHoldNs, whatever the watchers do, and there are never more
// than kMax.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/scoped_fd.h"

namespace heapprofd {

// Gives a permission that fanotify asks for, by the descriptor of its event.
void Permit(int group, int file);

class HeldExecs {
 public:
  static constexpr size_t kMax = 256;
  static constexpr size_t kUserShare = 4;  // one user other than root has 1/4

  // Whoever is to say when a thread may go on; only compared.
  using Holder = const void*;

  struct Exec {
    Holder holder;
    pid_t tid;
    uid_t user;         // who executes it
    uint64_t until_ns;  // then it has its permission in any case
  };

  // `group`: of fanotify; outlives it.
  explicit HeldExecs(int group);

  bool IsHeldFor(Holder holder, pid_t tid) const;

  bool HasRoomFor(uid_t user) const;

  // Of the next one that is added.
  uint64_t next_serial() const { return last_serial_ + 1; }

  // Takes the file of the event.
  void Add(ScopedFd file, const Exec& exec);

  // What the holder may say of those that he has, by their serials; others' are left alone:
  // that it has its permission at `until_ns`, if not before;
  void AllowAt(Holder holder, uint64_t serial, uint64_t until_ns);
  // that he is done with it.
  void Done(Holder holder, uint64_t serial);
  // The same of all that he has.
  void DoneWithAll(Holder holder);

  // To be called now and then, at next_ns() at the latest.
  void AllowOverdue();

  // When the next one has its permission in any case; ~0: nobody waits.
  uint64_t next_ns() const;

 private:
  struct Held {
    ScopedFd file;  // invalid: it has its permission
    uint64_t serial;
    Exec exec;
  };

  std::vector<Held>::iterator Find(Holder holder, uint64_t serial);
  void Allow(Held* held) const;

  int group_;
  uint64_t last_serial_ = 0;
  std::vector<Held> held_;
};

}  // namespace heapprofd
