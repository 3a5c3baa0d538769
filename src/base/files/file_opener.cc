#include "base/files/file_opener.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd_path.h"
#include "base/files/mount_info.h"
#include "base/files/mount_namespace.h"
#include "base/files/open_resolved.h"
#include "base/files/passed_fds.h"
#include "base/files/proc_files.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxOfUser = 4;
constexpr size_t kMaxChildren = 64;
constexpr size_t kMaxElsewhere = kMaxChildren / 4;
constexpr unsigned kChildSeconds = 20;             // then the kernel ends it, if it can
constexpr off_t kMaxCopy = off_t{256} << 20;       // bytes; libLLVM has 110 MiB
constexpr size_t kMaxMountInfo = size_t{1} << 20;  // bytes
constexpr size_t kChunk = size_t{1} << 20;         // bytes

// Whether the file is on an overlay that root has mounted, as that of a container. The
// process cannot come back from a user's name space, so that is looked at last.
bool IsOnOverlayOfRoot(int fd, pid_t pid) {
  struct statx status {};

  if (pid <= 0 || statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &status) != 0 ||
      (status.stx_mask & STATX_MNT_ID) == 0)
    return false;
  const std::vector<Mount> mounts =
      ParseMountInfo(ReadProcFile(ProcPath(pid, "mountinfo"), kMaxMountInfo));
  const auto mount =
      std::find_if(mounts.begin(), mounts.end(), [&status](const Mount& one) {
        return static_cast<uint64_t>(one.id) == status.stx_mnt_id;
      });
  return mount != mounts.end() && mount->type == "overlay" && IsOurUsersNamespace(pid);
}

// Whether its file system is one that root has mounted, or one in memory: ordinary users
// can mount no others but FUSE, and overlays above it.
bool IsSafe(int fd, pid_t pid) {
  struct statfs status {};

  if (fstatfs(fd, &status) != 0 || status.f_type == FUSE_SUPER_MAGIC)
    return false;
  return status.f_type != OVERLAYFS_SUPER_MAGIC || IsOnOverlayOfRoot(fd, pid);
}

// Invalid: it is too large, or could not be read.
ScopedFd CopyOf(int fd, off_t size) {
  if (size > kMaxCopy)
    return {};
  ScopedFd copy(memfd_create("heapprofd-copy", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  std::vector<char> chunk(kChunk);
  for (off_t at = 0; copy.valid() && at < size;) {
    const size_t wanted = std::min(chunk.size(), static_cast<size_t>(size - at));
    const ssize_t got = pread(fd, chunk.data(), wanted, at);
    if (got == 0)
      break;  // it is shorter by now
    if (got < 0 || pwrite(copy.get(), chunk.data(), static_cast<size_t>(got), at) != got)
      return {};
    at += got;
  }
  fcntl(copy.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK);
  return copy;
}

void Send(int socket, const OpenAnswer& answer, int fd) {
  const std::string_view bytes(reinterpret_cast<const char*>(&answer), sizeof(answer));
  SendWithFds(socket, bytes, fd >= 0 ? std::vector{fd} : std::vector<int>(),
              MSG_DONTWAIT);
}

struct Question {
  OpenQuestion head{};
  std::vector<std::string> paths;
  std::vector<ScopedFd> fds;  // for the answer, then the root
};

// In a child. It ends behind this, also when a close does not come back.
void Answer(const Question& question) {
  alarm(kChildSeconds);

  struct stat status {};

  const int root = question.fds.size() > 1 ? question.fds[1].get() : -1;
  const ScopedFd fd = OpenAny(question.paths, question.head.inode, root, &status);
  OpenAnswer answer = AnswerOf(status);
  const int socket = question.fds[0].get();
  if (!fd.valid() || IsSafe(fd.get(), question.head.process))
    return Send(socket, answer, fd.get());
  answer.is_copy = 1;
  Send(socket, answer, CopyOf(fd.get(), status.st_size).get());
}

// False: all have closed the socket.
bool Receive(int socket, Question* question) {
  Packet packet = ReceiveWithFds(socket, kMaxForeignRequest, /*flags=*/0);
  if (packet.bytes.size() < sizeof(question->head))
    return false;
  memcpy(&question->head, packet.bytes.data(), sizeof(question->head));
  question->fds = std::move(packet.fds);
  std::string_view rest = packet.bytes;
  rest.remove_prefix(sizeof(question->head));
  for (size_t end = 0; (end = rest.find('\0')) != std::string_view::npos;) {
    question->paths.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return true;
}

class FileOpener {
 public:
  explicit FileOpener(ScopedFd socket) : socket_(std::move(socket)) {}

  void Run() {
    Question question;
    while (Receive(socket_.get(), &question)) {
      if (!question.fds.empty())
        Serve(question);
      question = {};
    }
  }

 private:
  void Serve(const Question& question) {
    Reap();
    const GuardedUser user{.id = question.head.user,
                           .is_elsewhere = question.head.is_elsewhere != 0};
    const pid_t pid = MayOpenMore(children_, user) ? fork() : -1;
    if (pid == 0) {
      socket_.reset();
      Answer(question);
      _exit(0);
    }
    if (pid > 0)
      children_[pid] = user;
    else {
      OpenAnswer refusal{};
      refusal.is_refused = 1;
      Send(question.fds[0].get(), refusal, -1);
    }
  }

  void Reap() {
    for (pid_t pid = 0; (pid = waitpid(-1, nullptr, WNOHANG)) > 0;)
      children_.erase(pid);
  }

  ScopedFd socket_;
  OpenerChildren children_;
};

// What ends us or a terminal's job must not end this one first.
void RunOpener(ScopedFd socket) {
  prctl(PR_SET_NAME, "heapprofd-open");
  sigset_t none;
  sigemptyset(&none);
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE})
    signal(signal_number, SIG_IGN);
  signal(SIGALRM, SIG_DFL);
  signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  constexpr int kOnly = STDERR_FILENO + 1;
  const int kept = fcntl(socket.get(), F_DUPFD_CLOEXEC, kOnly + 1);
  if (dup2(nowhere, STDIN_FILENO) < 0 || dup2(nowhere, STDOUT_FILENO) < 0 ||
      dup2(nowhere, STDERR_FILENO) < 0 || dup2(kept, kOnly) != kOnly ||
      close_range(kOnly + 1, ~0U, 0) != 0)
    return;
  FileOpener(ScopedFd(kOnly)).Run();
}

}  // namespace

bool MayOpenMore(const OpenerChildren& children, const GuardedUser& user) {
  std::vector<GuardedUser> others;
  others.reserve(children.size());
  for (const auto& [pid, other] : children)
    others.push_back(other);
  return HasRoomFor(
      user, others,
      {.of_user = kMaxOfUser, .elsewhere = kMaxElsewhere, .all = kMaxChildren});
}

ScopedFd OpenAny(const std::vector<std::string>& paths,
                 uint64_t inode,
                 int root,
                 struct stat* status) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  for (const std::string& path : paths) {
    const ScopedFd place = root >= 0
                               ? OpenResolved(root, path, O_PATH | O_CLOEXEC,
                                              RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)
                               : ScopedFd(open(path.c_str(), O_PATH | O_CLOEXEC));
    // Looked at first: opening a device or a FIFO is an act of its own.
    if (!place.valid() || fstat(place.get(), status) != 0 || !S_ISREG(status->st_mode) ||
        (inode != 0 && status->st_ino != inode))
      continue;
    const std::string link = FdPath(place.get());
    if (ScopedFd fd(open(link.c_str(), kFlags)); fd.valid())
      return fd;
  }
  *status = {};
  return {};
}

OpenAnswer AnswerOf(const struct stat& status) {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = static_cast<uint64_t>(status.st_size),
          .changed_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec,
          .owner = status.st_uid,
          .is_copy = 0,
          .is_refused = 0,
          .reserved = 0};
}

// A grandchild, so that nobody need wait for its end.
ScopedFd StartFileOpener() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return {};
  ScopedFd ours(ends[0]);
  ScopedFd theirs(ends[1]);
  const pid_t pid = fork();
  if (pid == 0) {
    ours.reset();
    if (fork() == 0)
      RunOpener(std::move(theirs));
    _exit(0);
  }
  if (pid < 0)
    return {};
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return ours;
}

}  // namespace heapprofd
