#include "base/files/foreign_file.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/files/file_opener.h"
#include "base/files/passed_fds.h"
#include "base/files/proc_files.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxDirectories = 4096;
constexpr uint64_t kPauseFactor = 20;  // of what we have waited for in vain

ForeignFile FileOf(const OpenAnswer& answer, ScopedFd fd) {
  ForeignFile file;
  file.fd = std::move(fd);
  file.device = answer.device;
  file.inode = answer.inode;
  file.size = answer.size;
  file.changed_ns = answer.changed_ns;
  file.owner = answer.owner;
  file.is_copy = answer.is_copy != 0;
  return file;
}

// Asks no file system: what is known of the directory must do.
bool IsRootsAlone(int fd, dev_t root_device) {
  struct statx status {};

  if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MODE | STATX_UID,
            &status) != 0)
    return false;
  // A disk, which a user cannot mount, or the file system that / is on.
  const bool is_disk = status.stx_dev_major != 0 ||
                       makedev(status.stx_dev_major, status.stx_dev_minor) == root_device;
  return is_disk && status.stx_uid == 0 && (status.stx_mode & (S_IWGRP | S_IWOTH)) == 0;
}

enum class Place : uint8_t { kTrusted, kForeign, kNone };

// Whether nobody but root can change what lies in the directory, or what it is; or make
// it, if it does not exist.
Place PlaceOf(const std::string& directory) {
  struct statx status {};

  ScopedFd at(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!at.valid() ||
      statx(at.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &status) != 0)
    return Place::kForeign;
  const dev_t root_device = makedev(status.stx_dev_major, status.stx_dev_minor);
  for (size_t begin = 1; IsRootsAlone(at.get(), root_device);) {
    if (begin >= directory.size())
      return Place::kTrusted;
    const size_t end = std::min(directory.find('/', begin), directory.size());
    at = ScopedFd(openat(at.get(), directory.substr(begin, end - begin).c_str(),
                         O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!at.valid())
      return errno == ENOENT ? Place::kNone : Place::kForeign;
    begin = end + 1;
  }
  return Place::kForeign;
}

// What threads have found out. A child that is forked while one of them writes must find
// it whole and free.
class Known {
 public:
  Known() {
    pthread_atfork([] { g_known.mutex_.lock(); }, [] { g_known.mutex_.unlock(); },
                   [] { g_known.mutex_.unlock(); });
  }

  bool IsTrusted(const std::string& directory) {
    const std::lock_guard lock(mutex_);
    return trusted_.contains(directory);
  }

  void Trust(const std::string& directory) {
    const std::lock_guard lock(mutex_);
    if (trusted_.size() < kMaxDirectories)
      trusted_.insert(directory);
  }

  // From when on the user, who has made us wait, may be waited for again; 0: he has not.
  uint64_t PauseEndOf(uid_t user) {
    const std::lock_guard lock(mutex_);
    const auto found = until_ns_.find(user);
    return found == until_ns_.end() ? 0 : found->second;
  }

  void NoteWait(uid_t user, uint64_t waited_ns) {
    const std::lock_guard lock(mutex_);
    const uint64_t now = MonotonicNs();
    std::erase_if(until_ns_, [now](const auto& item) { return item.second <= now; });
    until_ns_[user] = now + kPauseFactor * waited_ns;
  }

 private:
  static Known g_known;

  friend Known& AllKnown();

  std::mutex mutex_;
  std::set<std::string> trusted_;       // directories
  std::map<uid_t, uint64_t> until_ns_;  // when each is waited for again; CLOCK_MONOTONIC
};

Known Known::g_known;

Known& AllKnown() {
  return Known::g_known;
}

// The same; what root has made of it since is root's.
Place KnownPlaceOf(const std::string& directory) {
  if (AllKnown().IsTrusted(directory))
    return Place::kTrusted;
  const Place place = PlaceOf(directory);
  if (place == Place::kTrusted)
    AllKnown().Trust(directory);
  return place;
}

// By its own name, when nobody can make us wait there. False: it must be opened apart.
bool OpenTrusted(const ForeignRequest& request, ForeignFile* file) {
  const bool is_any = request.inode == 0;
  const std::string& path = request.paths.back();
  if (request.root >= 0 || (!is_any && request.device == 0) || !path.starts_with('/') ||
      path.find("/./") != std::string::npos || path.find("/../") != std::string::npos)
    return false;
  const Place place = KnownPlaceOf(path.substr(0, path.rfind('/')));
  if (place != Place::kTrusted)
    return place == Place::kNone && is_any;
  ScopedFd fd(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid())
    return errno == ENOENT && is_any;

  struct stat status {};

  if (fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      (!is_any && (status.st_ino != request.inode || status.st_dev != request.device)))
    return false;
  *file = FileOf(AnswerOf(status), std::move(fd));
  return true;
}

// The process that opens; the same in forked children of ours.
int Opener() {
  static const ScopedFd socket = StartFileOpener();
  return socket.get();
}

std::string BytesOf(const ForeignRequest& request, const GuardedUser& user) {
  const OpenQuestion head{.inode = request.inode,
                          .user = user.id,
                          .is_elsewhere = user.is_elsewhere ? 1u : 0u,
                          .process = request.process,
                          .reserved = 0};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
  for (const std::string& path : request.paths)
    bytes.append(path).append(1, '\0');
  return bytes;
}

// False: as many questions wait as may.
bool Ask(const ForeignRequest& request, const std::string& bytes, int answer_to) {
  std::vector<int> fds = {answer_to};
  if (request.root >= 0)
    fds.push_back(request.root);
  return SendWithFds(Opener(), bytes, fds, MSG_DONTWAIT).has_value();
}

ForeignFile TakeAnswer(int socket) {
  OpenAnswer answer{};
  Packet packet = ReceiveWithFds(socket, sizeof(answer));
  if (packet.bytes.size() != sizeof(answer))
    return {};
  memcpy(&answer, packet.bytes.data(), sizeof(answer));
  if (answer.is_refused != 0) {
    ForeignFile late;
    late.is_late = true;
    return late;
  }
  return packet.fds.empty() ? ForeignFile() : FileOf(answer, std::move(packet.fds[0]));
}

// False: no answer, and no end of who was asked, in time.
bool AwaitAnswer(int socket, uint64_t deadline_ns) {
  for (uint64_t now = MonotonicNs(); now < deadline_ns; now = MonotonicNs()) {
    pollfd polled{.fd = socket, .events = POLLIN, .revents = 0};
    const auto left_ms = static_cast<int>((deadline_ns - now) / 1'000'000 + 1);
    if (poll(&polled, 1, left_ms) > 0)
      return true;
  }
  return false;
}

ForeignFile OpenApart(const ForeignRequest& request, uint64_t patience_ns) {
  const GuardedUser user = request.user ? *request.user : UserOf(request.process);
  const std::string question = BytesOf(request, user);
  std::array<int, 2> ends{};
  ForeignFile late;
  late.is_late = true;
  if (question.size() > kMaxForeignRequest)
    return {};
  // On a busy machine a user is slow for those who can hardly wait: who has more time lets
  // the pause pass, and has at least half of his time left for the answer.
  const uint64_t deadline_ns = MonotonicNs() + patience_ns;
  const uint64_t pause_end_ns = AllKnown().PauseEndOf(user.id);
  if (pause_end_ns > deadline_ns - patience_ns / 2)
    return late;
  SleepUntil(pause_end_ns);
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return late;
  ScopedFd ours(ends[0]);
  ScopedFd theirs(ends[1]);
  if (!Ask(request, question, theirs.get()))
    return late;
  theirs.reset();
  if (AwaitAnswer(ours.get(), deadline_ns))
    return TakeAnswer(ours.get());
  AllKnown().NoteWait(user.id, patience_ns);
  return late;
}

}  // namespace

GuardedUser UserOf(pid_t pid) {
  const uid_t nobody = 0x8000'0000u | static_cast<uid_t>(getpid());
  if (pid <= 0)
    return {.id = nobody};
  return GuardedUserOf(pid).value_or(GuardedUser{.id = nobody, .is_elsewhere = true});
}

void PrepareForeignFiles() {
  if (geteuid() == 0)
    static_cast<void>(Opener());
}

// An ordinary user's programs are his own, and so is what they make him wait for.
ForeignFile OpenForeign(const ForeignRequest& request, uint64_t patience_ns) {
  if (request.paths.empty() || request.paths.size() > kMaxForeignPaths)
    return {};
  if (geteuid() != 0) {
    struct stat status {};

    ScopedFd fd = OpenAny(request.paths, request.inode, request.root, &status);
    return FileOf(AnswerOf(status), std::move(fd));
  }
  ForeignFile file;
  return OpenTrusted(request, &file) ? std::move(file) : OpenApart(request, patience_ns);
}

ScopedFd OpenForeignPath(const std::string& path) {
  ForeignRequest request;
  request.paths = {path};
  return OpenForeign(request, kOwnPatienceNs).fd;
}

}  // namespace heapprofd
