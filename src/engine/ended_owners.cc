#include "engine/ended_owners.h"

#include <linux/capability.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "base/clock.h"
#include "base/files/own_rights.h"
#include "base/files/proc_files.h"

namespace heapprofd {
namespace {

constexpr size_t kStatusSize = 16384;

uint64_t IdOf(uint64_t owner) {
  return owner & (kForkSlotOwned - 1);
}

bool IsInOurNamespace(uint64_t id) {
  return kill(static_cast<pid_t>(id), 0) == 0 || errno != ESRCH;
}

// With the mount option "hidepid" others' processes may be missing from /proc. So they
// may where there are more mounts than are looked at.
bool AreAllShown() {
  constexpr size_t kMaxMounts = size_t{256} * 1024;  // bytes
  if (HasCapability(CAP_SYS_PTRACE) && IsInFirstUserNamespace())
    return true;
  const std::string mounts = ReadProcFile("/proc/self/mounts", kMaxMounts);
  return mounts.size() < kMaxMounts && mounts.find("hidepid=") == std::string::npos;
}

const char* NextNumber(DIR* directory) {
  while (const dirent* entry = readdir(directory)) {
    if (isdigit(static_cast<unsigned char>(entry->d_name[0])) != 0)
      return entry->d_name;
  }
  return nullptr;
}

}  // namespace

EndedOwners::EndedOwners(const ClientBlock& client)
    : processes_(nullptr, closedir), threads_(nullptr, closedir) {
  const uint32_t used = std::min<uint32_t>(
      client.ring.fork_slot_count.load(std::memory_order_acquire), kMaxForkSlots);
  for (uint32_t i = 0; i < used; ++i) {
    const uint64_t owner =
        client.fork_slots[i].slot.thread_pointer.load(std::memory_order_acquire);
    const uint64_t id = IdOf(owner);
    if (id == 0 || id > INT32_MAX || IsInOurNamespace(id))
      continue;
    candidates_.push_back({.slot = i, .value = owner});
    unseen_ids_.insert(id);
  }
  if (!candidates_.empty())
    processes_.reset(AreAllShown() ? opendir("/proc") : nullptr);
  if (processes_ == nullptr)
    GiveUp();
}

bool EndedOwners::LookUntil(uint64_t deadline_ns) {
  if (turns_left_-- <= 0)
    GiveUp();
  while (processes_ != nullptr && MonotonicNs() < deadline_ns) {
    if (threads_ != nullptr) {
      LookAtThread();
      continue;
    }
    const char* process = NextNumber(processes_.get());
    if (process != nullptr)
      LookAtProcess(std::string("/proc/") + process);
    else if (--looks_left_ > 0)
      rewinddir(processes_.get());
    else
      processes_.reset();
  }
  return processes_ == nullptr;
}

// Those of our own name space have been asked for by number.
void EndedOwners::LookAtProcess(const std::string& directory) {
  const std::string ids = StatusField(ReadStatus(directory), "NSpid");
  if (ids.find_first_of(" \t") == std::string::npos)
    return;
  process_ = directory + "/task";
  threads_.reset(opendir(process_.c_str()));
  if (threads_ == nullptr && errno != ENOENT && errno != ESRCH)
    GiveUp();
}

void EndedOwners::LookAtThread() {
  const char* thread = NextNumber(threads_.get());
  if (thread == nullptr)
    threads_.reset();
  else
    unseen_ids_.erase(
        static_cast<uint64_t>(InnerIdIn(ReadStatus(process_ + "/" + thread))));
}

// Of what has just ended there is nothing to read; of what we may not read we know
// nothing.
std::string EndedOwners::ReadStatus(const std::string& directory) {
  errno = 0;
  std::string status = ReadProcFile(directory + "/status", kStatusSize);
  if (status.empty() && errno != ENOENT && errno != ESRCH)
    GiveUp();
  return status;
}

void EndedOwners::GiveUp() {
  candidates_.clear();
  threads_.reset();
  processes_.reset();
}

uint32_t EndedOwners::Free(ClientBlock& client) const {
  uint32_t freed = 0;
  for (const Owner& owner : candidates_) {
    uint64_t value = owner.value;
    if (unseen_ids_.contains(IdOf(value)) &&
        client.fork_slots[owner.slot].slot.thread_pointer.compare_exchange_strong(value,
                                                                                  0))
      ++freed;
  }
  return freed;
}

}  // namespace heapprofd
