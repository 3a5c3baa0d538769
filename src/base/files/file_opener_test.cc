#include "base/files/file_opener.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "base/files/passed_fds.h"

namespace heapprofd {
namespace {

constexpr uid_t kUser = 61003;
constexpr int kAnswerMs = 60'000;

class Opener {
 public:
  Opener() {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    socket_ = StartFileOpener();
    EXPECT_TRUE(socket_.valid());
  }

  struct Answer {
    bool has_come = false;
    bool is_refused = false;
    size_t files = 0;
  };

  // Gives the socket for the answer.
  ScopedFd Send(const std::string& path, const GuardedUser& user) const {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    ScopedFd ours(ends[0]);
    const ScopedFd theirs(ends[1]);
    const OpenQuestion head{.inode = 0,
                            .user = user.id,
                            .is_elsewhere = user.is_elsewhere ? 1u : 0u,
                            .process = 0,
                            .reserved = 0};
    std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
    bytes.append(path).append(1, '\0');
    EXPECT_TRUE(SendWithFds(socket_.get(), bytes, {theirs.get()}));
    return ours;
  }

  static Answer Receive(const ScopedFd& socket) {
    pollfd readable{.fd = socket.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&readable, 1, kAnswerMs), 1);
    OpenAnswer answer{};
    const Packet packet = ReceiveWithFds(socket.get(), sizeof(answer));
    if (packet.bytes.size() != sizeof(answer))
      return {};
    memcpy(&answer, packet.bytes.data(), sizeof(answer));
    return {.has_come = true,
            .is_refused = answer.is_refused != 0,
            .files = packet.fds.size()};
  }

  Answer Ask(const std::string& path) const { return Receive(Send(path, {.id = kUser})); }

  // It is a child of ours, the only one. 0: it is not there.
  static pid_t Process() {
    const std::string self = std::to_string(getpid());
    pid_t pid = 0;
    std::ifstream("/proc/" + self + "/task/" + self + "/children") >> pid;
    return pid;
  }

 private:
  ScopedFd socket_;
};

// Whoever asks must neither wait for an answer that does not come, nor take the file for
// one that is not there.
void AskWithoutProcesses() {
  Opener opener;
  const Opener::Answer opened = opener.Ask("/etc/passwd");
  EXPECT_TRUE(opened.has_come && !opened.is_refused);
  EXPECT_EQ(opened.files, 1u);
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  ASSERT_EQ(prlimit(Opener::Process(), RLIMIT_NPROC, &none, nullptr), 0);
  for (int i = 0; i < 2; ++i) {
    const Opener::Answer refused = opener.Ask("/etc/passwd");
    EXPECT_TRUE(refused.has_come && refused.is_refused);
    EXPECT_EQ(refused.files, 0u);
  }
}

TEST(FileOpenerTest, WithoutAProcessForAFileItIsRefused) {
  const pid_t child = fork();
  if (child == 0) {
    // Root's processes may be as many as they like.
    if (geteuid() == 0 &&
        (setresgid(kUser, kUser, kUser) != 0 || setresuid(kUser, kUser, kUser) != 0))
      _exit(2);
    AskWithoutProcesses();
    fflush(stdout);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// One user may have as many ids there as he likes.
TEST(FileOpenerTest, UsersOfOtherNameSpacesLeavePlacesToOurs) {
  OpenerChildren children;
  GuardedUser user{.id = 100'000, .is_elsewhere = true};
  for (pid_t pid = 1; MayOpenMore(children, user); ++pid, ++user.id)
    children[pid] = user;
  EXPECT_EQ(children.size(), 16u);
  constexpr GuardedUser kAlice{.id = 61002};
  for (pid_t pid = 101; MayOpenMore(children, kAlice); ++pid)
    children[pid] = kAlice;
  EXPECT_EQ(children.size(), 20u);
}

// Of the opener, whose children do not come to their work. Ends them with this process.
class HeldChildren {
 public:
  explicit HeldChildren(pid_t opener) : opener_(opener) {
    is_tracing_ =
        ptrace(PTRACE_SEIZE, opener, 0, PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL) == 0;
  }

  bool is_tracing() const { return is_tracing_; }

  // Until there is one more.
  void AwaitNext() const {
    for (bool is_there = false; !is_there;) {
      int status = 0;
      ASSERT_EQ(waitpid(opener_, &status, __WALL), opener_);
      ASSERT_TRUE(WIFSTOPPED(status));
      is_there = status >> 16 == PTRACE_EVENT_FORK;
      const long signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
      ASSERT_EQ(ptrace(PTRACE_CONT, opener_, 0, signal), 0);
    }
  }

 private:
  pid_t opener_;
  bool is_tracing_ = false;
};

constexpr int kCannotTrace = 2;

// As finishers ask, whose programs have ended.
void AskForUsersWithoutProcesses() {
  const Opener opener;
  ASSERT_TRUE(opener.Ask("/etc/passwd").has_come);  // it has begun
  const HeldChildren children(Opener::Process());
  if (!children.is_tracing())
    _exit(kCannotTrace);
  GuardedUser user{.id = 100'000, .is_elsewhere = true};
  for (const uid_t end = user.id + 16; user.id < end; ++user.id) {
    opener.Send("/etc/passwd", user);
    ASSERT_NO_FATAL_FAILURE(children.AwaitNext());
  }
  EXPECT_TRUE(Opener::Receive(opener.Send("/etc/passwd", user)).is_refused);
  opener.Send("/etc/passwd", {.id = kUser});
  children.AwaitNext();
}

TEST(FileOpenerTest, UsersOfOtherNameSpacesHaveTheirShareWithoutAProcess) {
  const pid_t child = fork();
  if (child == 0) {
    AskForUsersWithoutProcesses();
    fflush(stdout);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == kCannotTrace)
    GTEST_SKIP() << "nothing can be traced here";
  EXPECT_EQ(status, 0);
}

TEST(FileOpenerTest, AFileThatIsNotThereIsNoRefusal) {
  const Opener::Answer answer = Opener().Ask("/no_such_file");
  EXPECT_TRUE(answer.has_come && !answer.is_refused);
  EXPECT_EQ(answer.files, 0u);
}

}  // namespace
}  // namespace heapprofd
