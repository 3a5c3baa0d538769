// Attaching to a process whose thread stands in the very instructions that are replaced.
#include "attach/return_places.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

#include "attach/attached_process.h"
#include "attach/registers.h"
#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr uint64_t kRingSize = 65536;
constexpr uint64_t kWalkPatienceNs = 60'000'000'000;

// Shared with the child.
struct Shared {
  std::atomic<uint64_t> calls;
  std::atomic<uint64_t> in_handler;  // times
  std::atomic<bool> may_leave;
};

Shared* g_shared = nullptr;

// What the handler has on its stack, bytes.
constexpr size_t kSmall = 64;
constexpr size_t kLarge = size_t{300} << 10;

template <size_t kSize>
void Handle(int) {
  std::array<volatile char, kSize> frame{};
  frame[0] = 1;
  g_shared->in_handler += 1;
  while (!g_shared->may_leave || frame[0] == 0) {
  }
}

// A process that allocates all the time.
class Allocating {
 public:
  explicit Allocating(void (*handler)(int) = nullptr, bool has_own_stack = false) {
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_shared = new (memory) Shared{};
    pid_ = fork();
    if (pid_ == 0)
      Run(handler, has_own_stack);
    AwaitCalls();
  }

  ~Allocating() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, __WALL);
    munmap(g_shared, sizeof(Shared));
  }

  pid_t pid() const { return pid_; }

  // Until it has made some more calls.
  void AwaitCalls() const {
    const uint64_t before = g_shared->calls;
    const uint64_t deadline = MonotonicNs() + kWalkPatienceNs;
    while (g_shared->calls < before + 1000 && MonotonicNs() < deadline)
      SleepNs(100'000);
    EXPECT_GE(g_shared->calls, before + 1000);
  }

  // Leaves it stopped behind the first instruction of malloc; gets `signal` there.
  void StopInMalloc(int signal) const {
    ASSERT_EQ(ptrace(PTRACE_SEIZE, pid_, 0, 0), 0);
    ASSERT_EQ(ptrace(PTRACE_INTERRUPT, pid_, 0, 0), 0);
    int status = 0;
    ASSERT_EQ(waitpid(pid_, &status, __WALL), pid_);
    const auto entry = reinterpret_cast<uint64_t>(&malloc);
    user_regs_struct registers{};
    bool was_at_entry = false;
    for (int i = 0; i < 100'000; ++i) {
      ASSERT_TRUE(GetRegisters(pid_, &registers));
      if (was_at_entry && ProgramCounter(registers) != entry)
        break;
      was_at_entry = ProgramCounter(registers) == entry;
      ASSERT_EQ(ptrace(PTRACE_SINGLESTEP, pid_, 0, 0), 0);
      ASSERT_EQ(waitpid(pid_, &status, __WALL), pid_);
    }
    constexpr uint64_t kReplaced = 4;  // bytes, at least
    ASSERT_LE(ProgramCounter(registers) - entry, kReplaced);
    ASSERT_EQ(ptrace(PTRACE_DETACH, pid_, 0, signal), 0);
  }

  void AwaitHandler() const {
    const uint64_t deadline = MonotonicNs() + kWalkPatienceNs;
    while (g_shared->in_handler == 0 && MonotonicNs() < deadline)
      SleepNs(100'000);
    ASSERT_EQ(g_shared->in_handler, 1u);
  }

 private:
  [[noreturn]] static void Run(void (*handler)(int), bool has_own_stack) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    constexpr size_t kStack = size_t{1} << 20;
    const stack_t own{.ss_sp = malloc(kStack), .ss_flags = 0, .ss_size = kStack};
    sigaltstack(&own, nullptr);

    struct sigaction action {};

    action.sa_handler = handler;
    action.sa_flags = has_own_stack ? SA_ONSTACK : 0;
    sigaction(SIGUSR1, &action, nullptr);
    while (true) {
      void* volatile memory = malloc(g_shared->calls % 100);  // not optimized away
      free(memory);
      g_shared->calls += 1;
    }
  }

  pid_t pid_;
};

class ReturnPlacesTest : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer's malloc begins otherwise";
#endif
  }

  // Attaches, has it go on by `go_on`, and detaches; it must work all the time.
  static void AttachAndDetach(const Allocating& process,
                              const std::function<void()>& go_on) {
    AllocatorFinder finder;
    Result<std::unique_ptr<AttachedProcess>> attached =
        AttachedProcess::Place(process.pid(), {.ring_size = kRingSize}, &finder);
    ASSERT_TRUE(attached.ok()) << attached.status().message();
    const Status status = attached.value()->PutHooksIn();
    ASSERT_TRUE(status.ok()) << status.message();
    go_on();
    process.AwaitCalls();
    const Status detached = attached.value()->TakeHooksOut();
    EXPECT_TRUE(detached.ok()) << detached.message();
    process.AwaitCalls();
  }

  static void InterruptAndAttach(const Allocating& process) {
    process.StopInMalloc(SIGUSR1);
    process.AwaitHandler();
    AttachAndDetach(process, [] { g_shared->may_leave = true; });
  }
};

TEST_F(ReturnPlacesTest, AThreadThatIsStoppedInsideGoesOnInTheCopy) {
  const Allocating process;
  process.StopInMalloc(SIGSTOP);
  AttachAndDetach(process, [&] { kill(process.pid(), SIGCONT); });
}

TEST_F(ReturnPlacesTest, AHandlerThatHasInterruptedItComesBackToTheCopy) {
  InterruptAndAttach(Allocating(Handle<kSmall>));
}

TEST_F(ReturnPlacesTest, AHandlerMayHaveALargeFrame) {
  InterruptAndAttach(Allocating(Handle<kLarge>));
}

// Stacks are read in parts of 64 KiB: a frame of 192 bytes and more that begins a little
// before the end of one.
template <size_t... kSteps>
std::array<void (*)(int), sizeof...(kSteps)> HandlersAcross(
    std::index_sequence<kSteps...> /*steps*/) {
  constexpr size_t kPart = size_t{64} << 10;
  return {Handle<kPart - 288 + 32 * kSteps>...};
}

TEST_F(ReturnPlacesTest, AFrameMayLieAcrossWhatIsReadAtOnce) {
  for (void (*handler)(int) : HandlersAcross(std::make_index_sequence<10>()))
    ASSERT_NO_FATAL_FAILURE(InterruptAndAttach(Allocating(handler)));
}

TEST_F(ReturnPlacesTest, AHandlerMayHaveAStackOfItsOwn) {
  InterruptAndAttach(Allocating(Handle<kLarge>, /*has_own_stack=*/true));
}

}  // namespace
}  // namespace heapprofd
