#include "engine/guarded_read.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "base/clock.h"
#include "base/files/proc_files.h"
#include "base/quiet_thread.h"

namespace heapprofd {
namespace {

constexpr uint64_t kPauseNs = 1'000'000'000;  // of a user whose process was late
constexpr uint64_t kHangs = UINT64_MAX;

// A read that goes on, or a user who is not read for a while. No locks: a child may be
// forked at any time.
struct Place {
  std::atomic<uint64_t> user{0};      // and one; 0: free
  std::atomic<uint64_t> until_ns{0};  // 0: within its time; kHangs
};

std::array<Place, 16> g_places;

// Null: this user has to wait, or all places are taken.
Place* TakePlace(uid_t user) {
  const uint64_t now = MonotonicNs();
  Place* free = nullptr;
  for (Place& place : g_places) {
    const uint64_t until = place.until_ns.load();
    if (until != 0 && until != kHangs && until <= now)
      place.user.store(0);
    if (place.user.load() == uint64_t{user} + 1 && until > now)
      return nullptr;
    if (place.user.load() == 0)
      free = &place;
  }
  uint64_t none = 0;
  if (free == nullptr || !free->user.compare_exchange_strong(none, uint64_t{user} + 1))
    return nullptr;
  free->until_ns.store(0);
  return free;
}

struct Reading {
  std::string path;
  size_t limit;
  Place* place;
  std::mutex mutex;
  std::condition_variable changed;
  std::string text;
  bool is_done = false;
  bool is_left = false;
};

void Read(Reading& reading) {
  std::string text = ReadProcFile(reading.path, reading.limit);
  const std::lock_guard lock(reading.mutex);
  reading.text = std::move(text);
  reading.is_done = true;
  if (reading.is_left)
    reading.place->until_ns.store(MonotonicNs() + kPauseNs);
  reading.changed.notify_all();
}

}  // namespace

std::string ReadGuarded(const std::string& path,
                        uid_t user,
                        size_t limit,
                        uint64_t patience_ns) {
  Place* place = TakePlace(user);
  if (place == nullptr)
    return "";
  const auto reading = std::make_shared<Reading>();
  reading->path = path;
  reading->limit = limit;
  reading->place = place;
  pthread_t thread{};
  if (!StartQuietThread([reading] { Read(*reading); }, &thread)) {
    place->user.store(0);
    return "";
  }
  pthread_detach(thread);
  std::unique_lock lock(reading->mutex);
  if (reading->changed.wait_for(lock, std::chrono::nanoseconds(patience_ns),
                                [&reading] { return reading->is_done; })) {
    place->user.store(0);
    return std::move(reading->text);
  }
  reading->is_left = true;
  place->until_ns.store(kHangs);
  return "";
}

std::string ReadMemoryFile(pid_t pid,
                           const char* file,
                           size_t limit,
                           uint64_t patience_ns) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + file;
  const uid_t user = RealUser(pid).value_or(0);
  if (user == 0 || user == geteuid())
    return ReadProcFile(path, limit);
  return ReadGuarded(path, user, limit, patience_ns);
}

}  // namespace heapprofd
