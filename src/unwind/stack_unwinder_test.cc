// Unwinds copies of this program's own stack and compares them with what libgcc's
// unwinder says about the same stack at the same moment.
#include "unwind/stack_unwinder.h"

#include <alloca.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "walk/rule_writer.h"

#define HPD_TEST_NOINLINE __attribute__((noinline, noclone))

namespace heapprofd {
namespace {

constexpr size_t kMaxKeys = 512;

struct Snapshot {
  Cursor cursor;
  std::vector<uint64_t> words;     // from cursor.sp upward
  std::vector<uint64_t> expected;  // keys by libgcc, innermost first

  StackCopy Copy() const {
    return {.cursor = cursor, .bytes = std::as_bytes(std::span(words))};
  }

  // As walk/step.h wants it.
  bool Read(uint64_t address, uint64_t* value) const {
    const uint64_t at = (address - cursor.sp) / 8;
    if (at >= words.size())
      return false;
    *value = words[at];
    return true;
  }
};

uint64_t StackTop() {
  pthread_attr_t attributes;
  void* low = nullptr;
  size_t size = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<uint64_t>(low) + size;
}

_Unwind_Reason_Code AddKey(_Unwind_Context* context, void* keys) {
  int is_before_instruction = 0;
  const uint64_t ip = _Unwind_GetIPInfo(context, &is_before_instruction);
  if (ip != 0)
    static_cast<std::vector<uint64_t>*>(keys)->push_back(
        ip + (is_before_instruction != 0 ? 1 : 0));
  return _URC_NO_REASON;
}

// The caller's frame and everything above it. The whole stack is read, also what the
// address sanitizer has put between variables.
__attribute__((noinline, noclone, no_sanitize_address)) void Capture(
    Snapshot* snapshot, uint64_t top = StackTop()) {
  const auto* frame = static_cast<const uint64_t*>(__builtin_frame_address(0));
  const auto* above = static_cast<const uint64_t*>(__builtin_dwarf_cfa());
  snapshot->cursor = {.key = WithoutSignature(frame[1]),
                      .sp = reinterpret_cast<uint64_t>(above),
                      .bp = frame[0]};
  const size_t count = std::min<size_t>(top - snapshot->cursor.sp, 256 * 1024) / 8;
  snapshot->words.resize(count);
  for (size_t i = 0; i < count; ++i)
    snapshot->words[i] = static_cast<const volatile uint64_t*>(above)[i];
  std::vector<uint64_t> keys;
  _Unwind_Backtrace(&AddKey, &keys);
  const auto caller = std::find(keys.begin(), keys.end(), snapshot->cursor.key);
  snapshot->expected.assign(caller, keys.end());
}

class StackUnwinderTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<RefreshOutcome> outcome = space_.Refresh();
    ASSERT_TRUE(outcome.ok());
    ASSERT_FALSE(outcome.value().is_incomplete);
  }

  void ExpectAgreement(const Snapshot& snapshot) {
    ASSERT_GE(snapshot.expected.size(), 5u);
    const UnwoundStack stack =
        unwinder_.Unwind(snapshot.Copy(), kMaxKeys, UnwindMode::kCached);
    EXPECT_EQ(stack.stop, StopReason::kComplete);
    EXPECT_EQ(stack.keys, snapshot.expected);
    const UnwoundStack fresh =
        unwinder_.Unwind(snapshot.Copy(), kMaxKeys, UnwindMode::kFresh);
    EXPECT_EQ(fresh.keys, snapshot.expected);
    EXPECT_TRUE(fresh.rules.empty());
  }

  bool UsesRule(const Snapshot& snapshot, RuleKind kind) {
    const UnwoundStack stack =
        unwinder_.Unwind(snapshot.Copy(), kMaxKeys, UnwindMode::kCached);
    return std::any_of(stack.rules.begin(), stack.rules.end(),
                       [kind](const auto& entry) { return entry.second.kind == kind; });
  }

  ModuleCache modules_{kOwnPatienceNs};
  std::vector<Mapping> mappings_;
  AddressSpace space_{getpid(), &modules_, &mappings_, /*files_ns=*/UINT64_MAX};
  StackUnwinder unwinder_{&space_};
};

HPD_TEST_NOINLINE int Leaf(Snapshot* snapshot, int depth) {
  Capture(snapshot);
  return depth + 1;
}

HPD_TEST_NOINLINE int Middle(Snapshot* snapshot, int depth) {
  volatile char frame[200] = {};
  frame[depth] = 1;
  return Leaf(snapshot, depth + frame[depth]) + frame[0];
}

HPD_TEST_NOINLINE int Recurse(Snapshot* snapshot, int depth) {
  volatile int result = 0;  // keeps the compiler from making it a loop
  result = depth == 0 ? Middle(snapshot, depth) : Recurse(snapshot, depth - 1);
  return result + 1;
}

TEST_F(StackUnwinderTest, PlainFramesAgree) {
  Snapshot snapshot;
  Middle(&snapshot, 1);
  ExpectAgreement(snapshot);
}

TEST_F(StackUnwinderTest, RecursionAgrees) {
  Snapshot snapshot;
  Recurse(&snapshot, 300);
  EXPECT_GT(snapshot.expected.size(), 300u);
  ExpectAgreement(snapshot);
}

TEST_F(StackUnwinderTest, FramesOfTheCLibraryAgree) {
  static Snapshot snapshot;
  int numbers[] = {3, 1, 2};
  qsort(numbers, 3, sizeof(int), [](const void* a, const void* b) {
    if (snapshot.expected.empty())
      Capture(&snapshot);
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
  });
  ExpectAgreement(snapshot);
}

TEST_F(StackUnwinderTest, AThreadsStackAgrees) {
  Snapshot snapshot;
  std::thread([&snapshot] { Middle(&snapshot, 1); }).join();
  ExpectAgreement(snapshot);
}

HPD_TEST_NOINLINE int Realigned(Snapshot* snapshot, size_t size) {
  alignas(64) volatile char aligned[64] = {};
  auto* moving = static_cast<volatile char*>(alloca(size));
  moving[size - 1] = 1;
  aligned[0] = 2;
  Capture(snapshot);
  return aligned[0] + moving[size - 1];
}

TEST_F(StackUnwinderTest, AFrameThatRealignsItsStackAgrees) {
  for (const size_t size : {1u, 100u, 5000u}) {
    Snapshot snapshot;
    Realigned(&snapshot, size);
    ExpectAgreement(snapshot);
#if defined(__x86_64__) && !defined(__clang__)
    EXPECT_TRUE(UsesRule(snapshot, RuleKind::kBpDeref));
#endif
  }
}

Snapshot* g_in_handler = nullptr;

void HandleSignal(int) {
  Capture(g_in_handler);
}

Snapshot CaptureInHandler() {
  Snapshot snapshot;
  g_in_handler = &snapshot;

  struct sigaction action {};

  struct sigaction before {};

  action.sa_handler = &HandleSignal;
  sigaction(SIGUSR1, &action, &before);
  raise(SIGUSR1);
  sigaction(SIGUSR1, &before, nullptr);
  return snapshot;
}

TEST_F(StackUnwinderTest, ASignalHandlerOnTheSameStackAgrees) {
  const Snapshot snapshot = CaptureInHandler();
  ExpectAgreement(snapshot);
  EXPECT_TRUE(UsesRule(snapshot, RuleKind::kSignal));
}

#if defined(__x86_64__)  // has a flag to step by
// Every instruction of some code is interrupted once: prologues and epilogues too.
class Stepping {
 public:
  static inline std::vector<Snapshot> snapshots;

  static void OnStep(int, siginfo_t*, void*) {
    if (next_ < snapshots.size())
      Capture(&snapshots[next_++], top_);
  }

  static void Run(size_t max_steps, const std::function<void()>& code) {
    snapshots.assign(max_steps, {});
    for (Snapshot& snapshot : snapshots)
      snapshot.words.reserve(256 * 1024 / 8);
    next_ = 0;
    top_ = StackTop();

    struct sigaction action {};

    struct sigaction before {};

    action.sa_sigaction = &OnStep;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, &before);
    constexpr uint64_t kTrapFlag = 0x100;
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | kTrapFlag);
    code();
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~kTrapFlag);
    sigaction(SIGTRAP, &before, nullptr);
    snapshots.resize(next_);
  }

 private:
  static inline size_t next_ = 0;
  static inline uint64_t top_ = 0;
};

TEST_F(StackUnwinderTest, EveryInstructionOfASortAgrees) {
  int numbers[] = {3, 1, 2, 5, 4};
  Stepping::Run(400, [&numbers] {
    qsort(numbers, 5, sizeof(int), [](const void* a, const void* b) {
      return *static_cast<const int*>(a) - *static_cast<const int*>(b);
    });
  });
  ASSERT_GE(Stepping::snapshots.size(), 200u);
  for (const Snapshot& snapshot : Stepping::snapshots) {
    ExpectAgreement(snapshot);
    if (HasFailure())
      break;
  }
}

#endif

TEST_F(StackUnwinderTest, TheLearntRulesWalkTheSameStackWithoutTheUnwinder) {
  Snapshot snapshot;
  Recurse(&snapshot, 20);
  const UnwoundStack learnt =
      unwinder_.Unwind(snapshot.Copy(), kMaxKeys, UnwindMode::kCached);
  const auto table = std::make_unique<RuleTable>();
  RuleWriter writer(table.get());
  for (const auto& [key, rule] : learnt.rules)
    writer.Insert(key, rule);

  std::vector<uint64_t> keys;
  Cursor cursor = snapshot.cursor;
  StepResult result = StepResult::kOk;
  while (result == StepResult::kOk && keys.size() < kMaxKeys) {
    keys.push_back(cursor.key);
    result = Step(table->Find(cursor.key), cursor, snapshot);
  }
  EXPECT_EQ(result, StepResult::kEnd);
  EXPECT_EQ(keys, snapshot.expected);
}

TEST_F(StackUnwinderTest, ACutCopyGivesTheInnermostFrames) {
  Snapshot snapshot;
  Recurse(&snapshot, 50);
  const std::vector<uint64_t> whole = snapshot.expected;
  snapshot.words.resize(100);
  const UnwoundStack stack =
      unwinder_.Unwind(snapshot.Copy(), kMaxKeys, UnwindMode::kFresh);
  EXPECT_EQ(stack.stop, StopReason::kTruncatedCopy);
  ASSERT_LT(stack.keys.size(), whole.size());
  EXPECT_TRUE(std::equal(stack.keys.begin(), stack.keys.end(), whole.begin()));
}

TEST_F(StackUnwinderTest, ADeepStackStopsAtTheMostFrames) {
  Snapshot snapshot;
  Recurse(&snapshot, 50);
  const UnwoundStack stack = unwinder_.Unwind(snapshot.Copy(), 10, UnwindMode::kFresh);
  EXPECT_EQ(stack.stop, StopReason::kTooDeep);
  EXPECT_EQ(stack.keys.size(), 10u);
}

constexpr uint64_t kNowhere = 0x5ffffffff;

TEST_F(StackUnwinderTest, AnAddressOutsideTheCodeEndsTheStackAndIsNoFrame) {
  Snapshot snapshot;
  Middle(&snapshot, 1);
  int data = 0;
  for (const uint64_t address : {kNowhere, reinterpret_cast<uint64_t>(&data)}) {
    Snapshot broken = snapshot;
    ASSERT_GE(snapshot.expected.size(), 3u);
    const auto caller =
        std::ranges::find(broken.words, snapshot.expected[2], &WithoutSignature);
    ASSERT_NE(caller, broken.words.end());
    *caller = address;
    for (const UnwindMode mode : {UnwindMode::kFresh, UnwindMode::kCached}) {
      const UnwoundStack stack = unwinder_.Unwind(broken.Copy(), kMaxKeys, mode);
      EXPECT_EQ(stack.stop, StopReason::kUnmapped);
      EXPECT_EQ(stack.keys, std::vector<uint64_t>(snapshot.expected.begin(),
                                                  snapshot.expected.begin() + 2));
    }
  }
}

TEST_F(StackUnwinderTest, ThatAnAddressIsNoCodeIsLearntUntilCodeIsThere) {
  void* page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  const uint64_t key = reinterpret_cast<uint64_t>(page) + 0x100;
  Snapshot snapshot;
  snapshot.cursor = {.key = key, .sp = 0x4000, .bp = 0};
  snapshot.words = {0, 0};
  const auto unwind = [&] {
    return unwinder_.Unwind(snapshot.Copy(), kMaxKeys, UnwindMode::kCached);
  };
  for (int i = 0; i < 2; ++i) {
    const UnwoundStack stack = unwind();
    EXPECT_TRUE(stack.keys.empty());
    ASSERT_EQ(stack.rules.size(), 1u);
    EXPECT_EQ(stack.rules[0], (std::pair{key, Rule{.kind = RuleKind::kNoCode}}));
  }
  ASSERT_EQ(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
  const uint64_t replacements = space_.replacements();
  ASSERT_TRUE(space_.Refresh().ok());
  EXPECT_GT(space_.replacements(), replacements);
  EXPECT_EQ(unwind().keys, std::vector<uint64_t>{key});
  munmap(page, 4096);
}

TEST_F(StackUnwinderTest, HiddenCodeOfACompilerIsAFrame) {
  void* page =
      mmap(nullptr, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  ASSERT_TRUE(space_.Refresh().ok());
  ASSERT_EQ(mprotect(page, 8192, PROT_READ | PROT_WRITE), 0);
  ASSERT_TRUE(space_.Refresh().ok());
  Snapshot snapshot;
  snapshot.cursor = {
      .key = reinterpret_cast<uint64_t>(page) + 4100, .sp = 0x4000, .bp = 0};
  snapshot.words = {0, 0};
  const UnwoundStack stack =
      unwinder_.Unwind(snapshot.Copy(), kMaxKeys, UnwindMode::kCached);
  EXPECT_EQ(stack.stop, StopReason::kUnmapped);
  EXPECT_EQ(stack.keys, std::vector<uint64_t>{snapshot.cursor.key});
  EXPECT_TRUE(stack.rules.empty());
  munmap(page, 8192);
}

TEST_F(StackUnwinderTest, NonsenseRegistersAreABadStack) {
  Snapshot snapshot;
  Realigned(&snapshot, 100);  // its rule depends on rbp
  for (const uint64_t bp : {uint64_t{0}, uint64_t{8}, UINT64_MAX, UINT64_MAX - 7}) {
    Snapshot broken = snapshot;
    broken.cursor.bp = bp;
    const UnwoundStack stack =
        unwinder_.Unwind(broken.Copy(), kMaxKeys, UnwindMode::kFresh);
    EXPECT_NE(stack.stop, StopReason::kComplete);
    EXPECT_EQ(stack.keys.size(), 1u);
  }
}

TEST_F(StackUnwinderTest, KnownRulesAreGivenOutAgainUntilTheyAreForgotten) {
  Snapshot snapshot;
  Middle(&snapshot, 1);
  const auto first = unwinder_.Unwind(snapshot.Copy(), kMaxKeys, UnwindMode::kCached);
  const auto second = unwinder_.Unwind(snapshot.Copy(), kMaxKeys, UnwindMode::kCached);
  EXPECT_EQ(first.rules, second.rules);
  EXPECT_EQ(first.rules.size(), first.keys.size());
  unwinder_.ForgetRules();
  EXPECT_EQ(unwinder_.Unwind(snapshot.Copy(), kMaxKeys, UnwindMode::kCached).rules,
            first.rules);
}

// Code from a JIT compiler: a page with no unwind information at all.
class JitTest : public StackUnwinderTest {
 protected:
  void SetUp() override {
    code_ =
        mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(code_, MAP_FAILED);
    StackUnwinderTest::SetUp();
    Middle(&real_, 1);
    key_ = reinterpret_cast<uint64_t>(code_) + 0x100;
  }

  void TearDown() override { munmap(code_, 4096); }

  void* code_ = nullptr;
  uint64_t key_ = 0;
  Snapshot real_;
};

TEST_F(JitTest, AFrameWithAPlausibleFramePointerIsFollowed) {
  std::vector<uint64_t> words = {0, 0, 0x5000, real_.cursor.key, 0};
  const StackCopy copy{.cursor = {.key = key_, .sp = 0x4000, .bp = 0x4010},
                       .bytes = std::as_bytes(std::span(words))};
  const UnwoundStack stack = unwinder_.Unwind(copy, kMaxKeys, UnwindMode::kCached);
  ASSERT_GE(stack.keys.size(), 2u);
  EXPECT_EQ(stack.keys[1], real_.cursor.key);
  EXPECT_EQ(stack.rules[0].second, kFramePointerRule);
}

TEST_F(JitTest, AFrameWithoutOneCutsTheStack) {
  std::vector<uint64_t> words = {0, 0, 0x5000, 0x1234, 0};
  for (const uint64_t bp : {0x4010ull, 0x4011ull, 0x3ff0ull, 0x90000000ull, 0ull}) {
    StackUnwinder unwinder(&space_);
    const StackCopy copy{.cursor = {.key = key_, .sp = 0x4000, .bp = bp},
                         .bytes = std::as_bytes(std::span(words))};
    const UnwoundStack stack = unwinder.Unwind(copy, kMaxKeys, UnwindMode::kCached);
    EXPECT_EQ(stack.stop, StopReason::kNoUnwindInfo) << bp;
    EXPECT_EQ(stack.keys.size(), 1u);
  }
}

// Nothing is learnt from it: the next copy may be longer.
TEST_F(JitTest, AFrameAboveTheCopyIsNotTakenForTheEnd) {
  std::vector<uint64_t> words = {0, 0, 0x5000, 0x1234, 0};
  StackUnwinder unwinder(&space_);
  const StackCopy copy{.cursor = {.key = key_, .sp = 0x4000, .bp = 0x9000},
                       .bytes = std::as_bytes(std::span(words)),
                       .anchor = {}};
  const UnwoundStack stack = unwinder.Unwind(copy, kMaxKeys, UnwindMode::kCached);
  EXPECT_EQ(stack.stop, StopReason::kTruncatedCopy);
  EXPECT_TRUE(stack.rules.empty());
}

}  // namespace
}  // namespace heapprofd
