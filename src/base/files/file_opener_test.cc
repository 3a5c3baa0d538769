#include "base/files/file_opener.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
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

  Answer Ask(const std::string& path) {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    const ScopedFd ours(ends[0]);
    ScopedFd theirs(ends[1]);
    const OpenQuestion head{.inode = 0, .user = kUser, .process = getpid()};
    std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
    bytes.append(path).append(1, '\0');
    EXPECT_TRUE(SendWithFds(socket_.get(), bytes, {theirs.get()}));
    theirs.reset();
    pollfd readable{.fd = ours.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&readable, 1, kAnswerMs), 1);
    OpenAnswer answer{};
    const Packet packet = ReceiveWithFds(ours.get(), sizeof(answer));
    if (packet.bytes.size() != sizeof(answer))
      return {};
    memcpy(&answer, packet.bytes.data(), sizeof(answer));
    return {.has_come = true,
            .is_refused = answer.is_refused != 0,
            .files = packet.fds.size()};
  }

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

TEST(FileOpenerTest, AFileThatIsNotThereIsNoRefusal) {
  const Opener::Answer answer = Opener().Ask("/no_such_file");
  EXPECT_TRUE(answer.has_come && !answer.is_refused);
  EXPECT_EQ(answer.files, 0u);
}

}  // namespace
}  // namespace heapprofd
