#include "base/files/guarded_read.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/files/proc_files.h"
#include "base/quiet_thread.h"

namespace heapprofd {
namespace {

constexpr size_t kPlaces = 16;
constexpr size_t kPlacesElsewhere = kPlaces / 4;  // for all of other user name spaces
constexpr uint64_t kPauseNs = 1'000'000'000;      // of a user whose process was late
constexpr uint64_t kStarvedNs = 1'000'000'000;    // for a thread that gets no processor

// A read that goes on, or a user who is not read for a while: his id, that there is one,
// whether he is elsewhere, and until when, in one word. No locks: a child may be forked
// at any time.
using ReadPlace = std::atomic<uint64_t>;  // 0: free
constexpr uint64_t kTaken = uint64_t{1} << 31;
constexpr uint64_t kElsewhere = uint64_t{1} << 30;
constexpr uint64_t kUntil = kElsewhere - 1;
constexpr uint64_t kInTime = 0;
constexpr uint64_t kHangs = 1;
constexpr int kUntilShift = 28;  // quarters of a second, about, for eight years

std::array<ReadPlace, kPlaces> g_places;
std::atomic<uint64_t> g_late_reads;

uint64_t WordOf(const GuardedUser& user, uint64_t until) {
  return uint64_t{user.id} << 32 | kTaken | (user.is_elsewhere ? kElsewhere : 0) | until;
}

uint64_t PauseOver() {
  return ((MonotonicNs() + kPauseNs) >> kUntilShift) + 1;
}

// The threads that hang are their parent's.
[[maybe_unused]] const int g_forgets_in_children = pthread_atfork(nullptr, nullptr, [] {
  for (ReadPlace& place : g_places)
    place.store(0);
});

GuardedUser UserOf(uint64_t word) {
  return {.id = static_cast<uid_t>(word >> 32), .is_elsewhere = (word & kElsewhere) != 0};
}

// Null: this user has to wait, or all places that he may have are taken.
ReadPlace* TakePlace(const GuardedUser& user) {
  const uint64_t now = MonotonicNs() >> kUntilShift;
  std::array<GuardedUser, kPlaces> others;
  size_t count = 0;
  for (ReadPlace& place : g_places) {
    uint64_t word = place.load();
    const uint64_t until = word & kUntil;
    if (until > kHangs && until <= now && place.compare_exchange_strong(word, 0))
      word = 0;
    if (word == 0)
      continue;
    others[count++] = UserOf(word);
    if (UserOf(word).id == user.id && (word & kUntil) != kInTime)
      return nullptr;
  }
  if (!HasRoomFor(user, {others.data(), count},
                  {.of_user = kPlaces, .elsewhere = kPlacesElsewhere, .all = kPlaces}))
    return nullptr;
  for (ReadPlace& place : g_places) {
    uint64_t none = 0;
    if (place.compare_exchange_strong(none, WordOf(user, kInTime)))
      return &place;
  }
  return nullptr;
}

struct Reading {
  std::function<void(Reading& reading)> read;  // uses nothing else
  std::string path;
  size_t limit = 0;
  GuardedUser user{};
  ReadPlace* place = nullptr;
  std::atomic<pid_t> thread = 0;       // that reads; 0: it has not begun
  std::shared_ptr<const ScopedFd> fd;  // null: to be opened
  std::mutex mutex;                    // guards what follows
  std::condition_variable changed;
  GuardedText result;
  bool is_done = false;
  bool is_left = false;
};

// False: it has been left.
bool Keep(Reading& reading, const char* bytes, size_t size) {
  const std::lock_guard lock(reading.mutex);
  if (!reading.is_left)
    reading.result.text.append(bytes, size);
  return !reading.is_left;
}

void ReadLink(Reading& reading) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = readlink(reading.path.c_str(), target.data(),
                                  std::min(target.size(), reading.limit));
  if (length < 0)
    reading.result.error = errno;
  else
    Keep(reading, target.data(), static_cast<size_t>(length));
}

void Open(Reading& reading, int how) {
  if (reading.fd != nullptr)
    return;
  reading.fd = std::make_shared<ScopedFd>(open(reading.path.c_str(), how | O_CLOEXEC));
  reading.result.error = reading.fd->valid() ? 0 : errno;
}

void OpenDirectory(Reading& reading) {
  Open(reading, O_PATH | O_DIRECTORY);
}

void ReadText(Reading& reading) {
  Open(reading, O_RDONLY);
  std::array<char, 16384> chunk{};
  for (size_t at = 0; reading.fd->valid() && at < reading.limit;) {
    const ssize_t got =
        pread(reading.fd->get(), chunk.data(), std::min(chunk.size(), reading.limit - at),
              static_cast<off_t>(at));
    if (got <= 0 || !Keep(reading, chunk.data(), static_cast<size_t>(got)))
      break;
    at += static_cast<size_t>(got);
  }
}

void ReadAndTell(Reading& reading) {
  reading.thread = gettid();
  reading.read(reading);
  const std::lock_guard lock(reading.mutex);
  reading.is_done = true;
  if (reading.is_left)
    reading.place->store(WordOf(reading.user, PauseOver()));
  reading.changed.notify_all();
}

GuardedText Late() {
  ++g_late_reads;
  return {.text = "", .error = 0, .is_late = true};
}

// Nobody keeps it from reading but the machine, which is busy: it runs, or would. What is
// long may be the other's doing, so that is told by its beginning. The caller has the
// mutex.
bool IsStarved(const Reading& reading) {
  const pid_t thread = reading.thread;
  if (thread == 0 || !reading.result.text.empty())
    return thread == 0;
  const std::string status =
      ReadProcFile("/proc/self/task/" + std::to_string(thread) + "/status", kMaxStatText);
  return StatusField(status, "State").starts_with("R");
}

// By a thread, which has a part in `reading`. Late: it may go on with it.
GuardedText ReadApart(const std::shared_ptr<Reading>& reading, uint64_t patience_ns) {
  reading->place = TakePlace(reading->user);
  if (reading->place == nullptr)
    return Late();
  pthread_t thread{};
  if (!StartQuietThread([reading] { ReadAndTell(*reading); }, &thread)) {
    reading->place->store(0);
    return Late();
  }
  pthread_detach(thread);
  const uint64_t end_ns = MonotonicNs() + kStarvedNs;
  std::unique_lock lock(reading->mutex);
  const auto waits = [&] {
    return reading->changed.wait_for(lock, std::chrono::nanoseconds(patience_ns),
                                     [&reading] { return reading->is_done; });
  };
  bool is_done = waits();
  while (!is_done && MonotonicNs() < end_ns && IsStarved(*reading))
    is_done = waits();
  if (is_done) {
    reading->place->store(0);
    return std::move(reading->result);
  }
  reading->is_left = true;
  reading->result.text = {};
  reading->place->store(WordOf(reading->user, kHangs));
  return Late();
}

GuardedUser WithNamespace(pid_t pid, uid_t user) {
  return {.id = user, .is_elsewhere = !IsInOurUserNamespace(pid).value_or(false)};
}

// Those of ours, and root's, are read here and now. That nobody holds a lock of theirs
// does not follow for one that is gone: its number may be another's by now.
GuardedText ReadOf(pid_t pid,
                   const std::shared_ptr<Reading>& reading,
                   uint64_t patience_ns) {
  errno = 0;
  const std::optional<uid_t> user = RealUser(pid);
  if (!user) {
    const bool has_no_descriptor = errno == EMFILE || errno == ENFILE;
    return {.text = "", .error = has_no_descriptor ? errno : ESRCH, .is_late = false};
  }
  if (*user == 0 || *user == geteuid()) {
    reading->read(*reading);
    return std::move(reading->result);
  }
  reading->user = WithNamespace(pid, *user);
  return ReadApart(reading, patience_ns);
}

std::shared_ptr<Reading> NewReading(const std::string& path,
                                    size_t limit,
                                    std::function<void(Reading&)> read = ReadText) {
  auto reading = std::make_shared<Reading>();
  reading->read = std::move(read);
  reading->path = path;
  reading->limit = limit;
  return reading;
}

}  // namespace

bool HasRoomFor(const GuardedUser& user,
                std::span<const GuardedUser> others,
                const UserShares& shares) {
  const auto of_user = std::ranges::count(others, user.id, &GuardedUser::id);
  const auto elsewhere = std::ranges::count(others, true, &GuardedUser::is_elsewhere);
  return static_cast<size_t>(of_user) < shares.of_user && others.size() < shares.all &&
         (!user.is_elsewhere || static_cast<size_t>(elsewhere) < shares.elsewhere);
}

std::optional<GuardedUser> GuardedUserOf(pid_t pid) {
  const std::optional<uid_t> user = RealUser(pid);
  return user ? std::optional(WithNamespace(pid, *user)) : std::nullopt;
}

GuardedText ReadGuarded(const std::string& path,
                        const GuardedUser& user,
                        size_t limit,
                        uint64_t patience_ns) {
  const std::shared_ptr<Reading> reading = NewReading(path, limit);
  reading->user = user;
  return ReadApart(reading, patience_ns);
}

GuardedText ReadMemoryFile(pid_t pid,
                           const char* file,
                           size_t limit,
                           uint64_t patience_ns) {
  return ReadOf(pid, NewReading(ProcPath(pid, file), limit), patience_ns);
}

GuardedText ReadProcessLink(pid_t pid, const char* link, uint64_t patience_ns) {
  return ReadOf(pid, NewReading(ProcPath(pid, link), PATH_MAX, ReadLink), patience_ns);
}

GuardedText AskAbout(pid_t pid, std::function<std::string()> ask, uint64_t patience_ns) {
  const auto read = [ask = std::move(ask)](Reading& reading) {
    const std::string text = ask();
    Keep(reading, text.data(), text.size());
  };
  return ReadOf(pid, NewReading("", 0, read), patience_ns);
}

std::shared_ptr<const ScopedFd> OpenProcessDirectory(pid_t pid,
                                                     const char* link,
                                                     uint64_t patience_ns) {
  const std::shared_ptr<Reading> reading =
      NewReading(ProcPath(pid, link), 0, OpenDirectory);
  const GuardedText result = ReadOf(pid, reading, patience_ns);
  if (result.is_late || reading->fd == nullptr || !reading->fd->valid())
    return nullptr;
  return reading->fd;
}

MemoryFile::MemoryFile(pid_t pid, const char* name)
    : pid_(pid), path_(ProcPath(pid, name)) {}

GuardedText MemoryFile::Read(size_t limit, uint64_t patience_ns) {
  const std::shared_ptr<Reading> reading = NewReading(path_, limit);
  reading->fd = std::move(fd_);
  GuardedText result = ReadOf(pid_, reading, patience_ns);
  if (!result.is_late && reading->fd != nullptr && reading->fd->valid())
    fd_ = reading->fd;
  return result;
}

uint64_t LateReads() {
  return g_late_reads;
}

}  // namespace heapprofd
