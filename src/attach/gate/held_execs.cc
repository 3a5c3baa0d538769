#include "attach/gate/held_execs.h"

#include <sys/fanotify.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace heapprofd {

void Permit(int group, int file) {
  const fanotify_response response{.fd = file, .response = FAN_ALLOW};
  const ssize_t ignored = write(group, &response, sizeof(response));
  static_cast<void>(ignored);
}

HeldExecs::HeldExecs(int group) : group_(group) {
  held_.reserve(kMax);
}

bool HeldExecs::IsHeldFor(Holder holder, pid_t tid) const {
  return std::any_of(held_.begin(), held_.end(), [&](const Held& held) {
    return held.exec.tid == tid && held.exec.holder == holder;
  });
}

bool HeldExecs::HasRoomFor(uid_t user) const {
  const auto same = std::count_if(held_.begin(), held_.end(), [user](const Held& held) {
    return held.exec.user == user;
  });
  return held_.size() < kMax &&
         (user == 0 || static_cast<size_t>(same) < kMax / kUserShare);
}

void HeldExecs::Add(ScopedFd file, const Exec& exec) {
  ++last_serial_;
  held_.push_back({.file = std::move(file), .serial = last_serial_, .exec = exec});
}

std::vector<HeldExecs::Held>::iterator HeldExecs::Find(Holder holder, uint64_t serial) {
  return std::find_if(held_.begin(), held_.end(), [&](const Held& held) {
    return held.exec.holder == holder && held.serial == serial;
  });
}

void HeldExecs::AllowAt(Holder holder, uint64_t serial, uint64_t until_ns) {
  if (const auto held = Find(holder, serial); held != held_.end())
    held->exec.until_ns = std::min(held->exec.until_ns, until_ns);
}

void HeldExecs::Done(Holder holder, uint64_t serial) {
  const auto held = Find(holder, serial);
  if (held == held_.end())
    return;
  Allow(&*held);
  held_.erase(held);
}

void HeldExecs::DoneWithAll(Holder holder) {
  std::erase_if(held_, [&](Held& held) {
    const bool is_his = held.exec.holder == holder;
    if (is_his)
      Allow(&held);
    return is_his;
  });
}

void HeldExecs::Allow(Held* held) const {
  if (held->file.valid())
    Permit(group_, held->file.get());
  held->file.reset();
}

void HeldExecs::AllowOverdue() {
  const uint64_t now = MonotonicNs();
  for (Held& held : held_) {
    if (held.exec.until_ns <= now)
      Allow(&held);
  }
}

uint64_t HeldExecs::next_ns() const {
  uint64_t next = ~uint64_t{0};
  for (const Held& held : held_)
    next = held.file.valid() ? std::min(next, held.exec.until_ns) : next;
  return next;
}

}  // namespace heapprofd
