#include "attach/attached_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "wire/attached_client.h"

namespace heapprofd {
namespace {

constexpr size_t kCodeSize = 4096;
constexpr size_t kVictimSize = 16384;
constexpr uint32_t kLength = 14;

// A process that pretends to hold an image of ours, with two functions patched: what was
// said of the first is longer than any patch.
class Forger {
 public:
  Forger() {
    victim_ = static_cast<uint8_t*>(Map(kVictimSize));
    memset(victim_, 'w', kVictimSize);
    const size_t total = kCodeSize + sizeof(AttachState) + kCodeSize;
    auto* image = static_cast<std::byte*>(Map(total));
    auto* header = new (image) AttachHeader{};
    header->magic = kAttachMagic;
    header->code_size = kCodeSize;
    header->state = kCodeSize;
    header->total_size = static_cast<uint32_t>(total);
    header->wiped = kCodeSize + sizeof(AttachState);
    auto* state = new (image + kCodeSize) AttachState{};
    state->patch_count = 2;
    Forge(&state->patches[0], victim_, kVictimSize / 2);
    Forge(&state->patches[1], victim_ + kVictimSize / 2, kLength);
    mprotect(image, kCodeSize, PROT_READ | PROT_EXEC);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true)
        pause();
    }
  }

  ~Forger() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, __WALL);
  }

  pid_t pid() const { return pid_; }

  std::vector<uint8_t> Victim() const {
    std::vector<uint8_t> bytes(kVictimSize);
    const Result<RemoteProcess> process = RemoteProcess::Open(pid_);
    EXPECT_TRUE(process.ok() && process.value().Read(reinterpret_cast<uint64_t>(victim_),
                                                     bytes.data(), bytes.size()));
    return bytes;
  }

 private:
  static void* Map(size_t size) {
    return mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0);
  }

  static void Forge(PatchRecord* record, uint8_t* address, uint32_t length) {
    record->address = reinterpret_cast<uint64_t>(address);
    record->length = length;
    memset(record->original, 'o', sizeof(record->original));
    memset(record->written, 'w', sizeof(record->written));
  }

  uint8_t* victim_;
  pid_t pid_;
};

TEST(AttachedProcessTest, RestoringIsBoundedWhateverTheProcessSays) {
  const Forger forger;
  const Status status = AttachedProcess::Restore(forger.pid());
  ASSERT_TRUE(status.ok()) << status.message();
  std::vector<uint8_t> expected(kVictimSize, 'w');
  memset(&expected[kVictimSize / 2], 'o', kLength);
  EXPECT_EQ(forger.Victim(), expected);
}

// As one does that has a /proc of its own, and so is not kept out by the lock.
TEST(AttachedProcessTest, WhoeverPlacesLastPutsTheHooksIn) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's malloc cannot be patched everywhere";
#endif
  constexpr uint64_t kRingSize = 65536;
  const Forger process;
  ASSERT_TRUE(AttachedProcess::Restore(process.pid()).ok());
  AllocatorFinder finder;
  const auto place = [&] {
    auto placed =
        AttachedProcess::Place(process.pid(), {.ring_size = kRingSize}, &finder);
    EXPECT_TRUE(placed.ok()) << placed.status().message();
    return placed.ok() ? std::move(placed).value() : nullptr;
  };
  const auto first = place();
  ASSERT_NE(first, nullptr);
  const ScopedFd memory(
      open(("/proc/" + std::to_string(process.pid()) + "/mem").c_str(), O_RDWR));
  ASSERT_FALSE(flock(memory.get(), LOCK_EX | LOCK_NB) == 0);
  first->Unlock();
  const auto second = place();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(first->PutHooksIn().code(), StatusCode::kTryAgain);
  EXPECT_TRUE(second->PutHooksIn().ok());
  EXPECT_TRUE(second->TakeHooksOut().ok());
}

}  // namespace
}  // namespace heapprofd
