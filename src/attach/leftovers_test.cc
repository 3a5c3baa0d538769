#include "attach/leftovers.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "attach/client_image.h"
#include "attach/thread/test_process.h"
#include "base/clock.h"
#include "wire/shared_memory.h"

namespace heapprofd {
namespace {

constexpr size_t kVictimSize = 16384;
constexpr uint8_t kForgedLength = 14;
constexpr uint8_t kForgedTooLong = 255;
constexpr uint64_t kParentsSeed = 5;
constexpr uint64_t kForgedRing = 65536;

void* MapMemory(size_t size) {
  return mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// A process that pretends to hold an image of ours, with two functions patched: what was
// said of the first is longer than any patch.
class Forger {
 public:
  // `run`: of that process; its engine's block is what somebody beats in who records it.
  explicit Forger(const std::function<void(EngineBlock*)>& run = [](auto*) {
    PauseForEver();
  }) {
    memset(victim_, 'w', kVictimSize);
    memcpy(image_, ClientImage().data(), ClientImage().size());
    AttachState& state = *new (image_ + ClientHeader().state) AttachState{};
    state.request.seed = kParentsSeed;
    state.request.ring_size = kForgedRing;
    state.request.children = ChildrenMode::kFollowed;
    state.result.engine_block = reinterpret_cast<uint64_t>(engine_);
    state.patch_count = 2;
    state.gates_used = UINT64_MAX - 1;
    state.islands_used[0] = UINT64_MAX - 1;
    Forge(&state.patches[0], victim_, kForgedTooLong);
    Forge(&state.patches[1], victim_ + kVictimSize / 2, kForgedLength);
    mprotect(image_, ClientHeader().code_size, PROT_READ | PROT_EXEC);
    process_.emplace([&] {
      state.request.pid = static_cast<uint32_t>(getpid());
      const uint32_t on = 1;
      memcpy(image_ + ClientHeader().wiped, &on, sizeof(on));
      engine_->control.heartbeat += 1;
      run(engine_);
    });
    const std::byte* heartbeat = reinterpret_cast<const std::byte*>(engine_) +
                                 offsetof(EngineBlock, control.heartbeat);
    while (Word(heartbeat) == 0)
      usleep(100);
  }

  ~Forger() {
    munmap(image_, ClientHeader().total_size);
    munmap(victim_, kVictimSize);
    munmap(engine_, sizeof(EngineBlock));
  }

  Forger(const Forger&) = delete;
  Forger& operator=(const Forger&) = delete;

  pid_t pid() const { return process_->pid(); }

  RemoteProcess Open() const {
    Result<RemoteProcess> process = RemoteProcess::Open(pid());
    HPD_CHECK(process.ok());
    return std::move(process).value();
  }

  std::vector<uint8_t> Victim() const {
    std::vector<uint8_t> bytes(kVictimSize);
    EXPECT_TRUE(
        Open().Read(reinterpret_cast<uint64_t>(victim_), bytes.data(), bytes.size()));
    return bytes;
  }

 private:
  uint64_t Word(const void* at) const {
    uint64_t word = 0;
    Open().ReadObject(reinterpret_cast<uint64_t>(at), &word);
    return word;
  }

  static void Forge(PatchRecord* record, uint8_t* address, uint8_t length) {
    record->address = reinterpret_cast<uint64_t>(address);
    record->length = length;
    memset(record->original, 'o', sizeof(record->original));
    memset(record->written, 'w', sizeof(record->written));
  }

  std::byte* image_ = static_cast<std::byte*>(MapMemory(ClientHeader().total_size));
  uint8_t* victim_ = static_cast<uint8_t*>(MapMemory(kVictimSize));
  EngineBlock* engine_ = new (MapMemory(sizeof(EngineBlock))) EngineBlock{};
  std::optional<TestProcess> process_;
};

// What a process of this session had in it that has forked the forger.
std::map<uint64_t, pid_t> Parent(pid_t pid) {
  return {{kParentsSeed, pid}};
}

TEST(LeftoversTest, TakingThemOutIsBoundedWhateverTheProcessSays) {
  const Forger forger;
  const Status status = RestoreProcess(forger.pid());
  ASSERT_TRUE(status.ok()) << status.message();
  std::vector<uint8_t> expected(kVictimSize, 'w');
  memset(&expected[kVictimSize / 2], 'o', kForgedLength);
  EXPECT_EQ(forger.Victim(), expected);
}

TEST(LeftoversTest, AnImageOfOursIsUsedAgain) {
  const TestProcess other;  // before we have such memory that it would have, too
  const Forger forger;
  const RemoteProcess process = forger.Open();
  const Result<std::optional<LeftImage>> left = UndoLeftovers(process, process.Maps());
  ASSERT_TRUE(left.ok() && left.value()) << left.status().message();
  EXPECT_EQ(left.value()->state.request.seed, kParentsSeed);
  EXPECT_LE(left.value()->state.gates_used, UINT32_MAX);
  EXPECT_LE(left.value()->state.islands_used[0], kIslandSize);
  const Result<RemoteProcess> without = RemoteProcess::Open(other.pid());
  ASSERT_TRUE(without.ok()) << without.status().message();
  const auto none = UndoLeftovers(without.value(), without.value().Maps());
  EXPECT_TRUE(none.ok() && !none.value());
}

TEST(LeftoversTest, TheHooksOfAnEngineThatLivesStayIn) {
  const Forger forger([](EngineBlock* engine) {
    while (true) {
      engine->control.heartbeat = MonotonicNs();
      usleep(100);
    }
  });
  const std::string number = std::to_string(forger.pid());
  EXPECT_EQ(RestoreProcess(forger.pid()).message(),
            "cannot attach to process " + number +
                ": another heap_profile records it; end that one first");
  EXPECT_EQ(forger.Victim(), std::vector<uint8_t>(kVictimSize, 'w'));
}

TEST(LeftoversTest, WhileAnEngineAttachesNothingIsTakenOut) {
  const Forger forger;
  const RemoteProcess process = forger.Open();
  ASSERT_TRUE(process.Lock());
  EXPECT_EQ(RestoreProcess(forger.pid()).code(), StatusCode::kTryAgain);
  EXPECT_EQ(forger.Victim(), std::vector<uint8_t>(kVictimSize, 'w'));
}

TEST(LeftoversTest, AForkedChildIsKnownByTheSessionOfItsParent) {
  const Forger forger;
  const RemoteProcess process = forger.Open();
  const std::vector<MapEntry> maps = process.Maps();
  const auto find = [&](const std::map<uint64_t, pid_t>& recorded, uint64_t ring_size) {
    return FindCountingChild(process, maps, recorded, ring_size);
  };
  const std::optional<LeftImage> child = find(Parent(getpid()), kForgedRing);
  ASSERT_TRUE(child);
  EXPECT_EQ(child->patches, std::vector<size_t>{1});
  EXPECT_FALSE(find({}, kForgedRing));
  EXPECT_FALSE(find(Parent(forger.pid()), kForgedRing));  // it is that process itself
  EXPECT_FALSE(find(Parent(getpid()), kForgedRing * 2));
}

}  // namespace
}  // namespace heapprofd
