#include "engine/ended_owners.h"

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

uint64_t OwnerWith(pid_t id) {
  return kForkSlotOwned | static_cast<uint64_t>(id);
}

// More than the kernel ever gives (PID_MAX_LIMIT), in whatever name space.
constexpr pid_t kNobodysId = INT32_MAX - 1;

// The number of a process that has ended, and of none other in our name space.
pid_t EndedId() {
  const pid_t pid = fork();
  if (pid == 0)
    _exit(0);
  waitpid(pid, nullptr, 0);
  return pid;
}

// A process that has this number in a PID name space of its own, where that is permitted.
class Stranger {
 public:
  explicit Stranger(pid_t id) {
    int fds[2];
    int ends[2];
    if (pipe(fds) != 0 || pipe(ends) != 0)
      return;
    end_ = ScopedFd(ends[1]);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[1]);
      Begin(id, fds[1], ends[0]);
    }
    close(fds[1]);
    close(ends[0]);
    const ScopedFd news(fds[0]);
    char word = 0;
    is_there_ = read(news.get(), &word, 1) == 1;
  }

  ~Stranger() {
    end_.reset();
    if (pid_ > 0)
      waitpid(pid_, nullptr, 0);
  }

  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  bool is_there() const { return is_there_; }

 private:
  [[noreturn]] static void Begin(pid_t id, int news, int end) {
    if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
      _exit(1);
    const pid_t first = fork();
    if (first != 0) {
      close(news);
      waitpid(first, nullptr, 0);
      _exit(0);
    }
    clone_args arguments{};
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = reinterpret_cast<uint64_t>(&id);
    arguments.set_tid_size = 1;
    const long child = syscall(SYS_clone3, &arguments, sizeof(arguments));
    if (child == 0 && write(news, "x", 1) == 1) {
      pollfd wait{.fd = end, .events = POLLIN, .revents = 0};
      poll(&wait, 1, -1);
    } else if (child > 0) {
      close(news);
      waitpid(static_cast<pid_t>(child), nullptr, 0);
    }
    _exit(0);
  }

  pid_t pid_ = 0;
  ScopedFd end_;
  bool is_there_ = false;
};

class EndedOwnersTest : public testing::Test {
 protected:
  void Own(uint32_t index, uint64_t owner) {
    client_->fork_slots[index].slot.thread_pointer.store(owner);
    client_->ring.fork_slot_count.store(index + 1);
  }

  uint64_t OwnerOf(uint32_t index) const {
    return client_->fork_slots[index].slot.thread_pointer.load();
  }

  uint32_t Free() {
    EndedOwners owners(*client_);
    EXPECT_TRUE(owners.LookUntil(UINT64_MAX));
    return owners.Free(*client_);
  }

  std::unique_ptr<ClientBlock> client_ = std::make_unique<ClientBlock>();
};

TEST_F(EndedOwnersTest, SlotsOfTheDeadAreFreed) {
  Own(0, OwnerWith(kNobodysId));
  Own(1, OwnerWith(getpid()));
  EXPECT_EQ(Free(), 1u);
  EXPECT_EQ(OwnerOf(0), 0u);
  EXPECT_EQ(OwnerOf(1), OwnerWith(getpid()));
}

TEST_F(EndedOwnersTest, AnOwnerWhoseThreadIsUnknownIsNotTakenForEnded) {
  Own(0, kForkSlotOwned);
  EXPECT_EQ(Free(), 0u);
}

TEST_F(EndedOwnersTest, AnOwnerInAnotherNameSpaceIsNotTakenForEnded) {
  const pid_t id = EndedId();
  Own(0, OwnerWith(id));
  {
    const Stranger stranger(id);
    if (!stranger.is_there())
      GTEST_SKIP() << "no PID name space can be made here";
    EXPECT_EQ(Free(), 0u);
  }
}

TEST_F(EndedOwnersTest, WhoTakesASlotMeanwhileKeepsIt) {
  Own(0, OwnerWith(kNobodysId));
  EndedOwners owners(*client_);
  client_->fork_slots[0].slot.thread_pointer.store(OwnerWith(getpid()));
  EXPECT_TRUE(owners.LookUntil(UINT64_MAX));
  EXPECT_EQ(owners.Free(*client_), 0u);
  EXPECT_EQ(OwnerOf(0), OwnerWith(getpid()));
}

TEST_F(EndedOwnersTest, ALookIsTakenInTurns) {
  Own(0, OwnerWith(kNobodysId));
  EndedOwners owners(*client_);
  EXPECT_FALSE(owners.LookUntil(0));
  EXPECT_TRUE(owners.LookUntil(UINT64_MAX));
  EXPECT_EQ(owners.Free(*client_), 1u);
}

TEST_F(EndedOwnersTest, ALookThatDoesNotEndIsGivenUp) {
  Own(0, OwnerWith(kNobodysId));
  EndedOwners owners(*client_);
  for (int turn = 0; !owners.LookUntil(/*deadline_ns=*/0); ++turn)
    ASSERT_LT(turn, 1000);
  EXPECT_EQ(owners.Free(*client_), 0u);
}

}  // namespace
}  // namespace heapprofd
