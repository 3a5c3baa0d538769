// What a target may do to the files it shares, and what is said when there are none.
#include "wire/memory_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/test_limits.h"

namespace heapprofd {
namespace {

constexpr uint64_t kRing = 1 << 16;

std::string ErrorOf(const Result<std::unique_ptr<SharedMemory>>& memory) {
  return memory.ok() ? "" : memory.status().message();
}

// As a target has them, from the first moment on.
TEST(SharedMemoryTest, NobodyWhoGetsTheFilesCanResizeThemOrWriteTheEnginesOne) {
  const auto memory =
      SharedMemory::Create(kRing, SharedMemory::EngineLock::kNotHeld).value();
  for (const int file : {memory->engine_fd(), memory->client_fd()}) {
    EXPECT_EQ(ftruncate(file, 0), -1);
    EXPECT_EQ(errno, EPERM);
  }
  const int engine = memory->engine_fd();
  EXPECT_EQ(mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_SHARED, engine, 0),
            MAP_FAILED);
  void* view = mmap(nullptr, kPageSize, PROT_READ, MAP_SHARED, engine, 0);
  ASSERT_NE(view, MAP_FAILED);
  EXPECT_NE(mprotect(view, kPageSize, PROT_READ | PROT_WRITE), 0);
  munmap(view, kPageSize);
  EXPECT_EQ(pwrite(engine, "x", 1, 0), -1);
  EXPECT_EQ(fcntl(engine, F_ADD_SEALS, F_SEAL_WRITE), -1);
}

// It holds addresses that would be followed.
TEST(SharedMemoryTest, OnlyWhereItIsAskedForThereIsALock) {
  using Lock = SharedMemory::EngineLock;
  const auto without = SharedMemory::Create(kRing, Lock::kNotHeld).value();
  const auto with = SharedMemory::Create(kRing, Lock::kHeld).value();
  EXPECT_EQ(without->engine().control.engine_lock[0].load(), 0u);
  EXPECT_NE(with->engine().control.engine_lock[0].load(), 0u);
}

TEST(SharedMemoryTest, WithoutRoomThatIsSaid) {
  if (!kMayRunOutOfDescriptors)
    GTEST_SKIP() << "sanitizers need address space of their own";
  const ScopedLimit none(RLIMIT_AS, 1);
  EXPECT_EQ(ErrorOf(SharedMemory::Create(kRing)).find("cannot map shared memory: "), 0u);
}

TEST(SharedMemoryTest, WithoutDescriptorsOrAddressesThatIsSaid) {
  EXPECT_NE(ErrorOf(SharedMemory::Create(uint64_t{1} << 47))
                .find("cannot reserve address space for the ring: "),
            std::string::npos);
  if (!kMayRunOutOfDescriptors)
    GTEST_SKIP() << "sanitizers need descriptors of their own";
  const ScopedLimit none(RLIMIT_NOFILE, 0);
  EXPECT_EQ(ErrorOf(SharedMemory::Create(kRing)),
            "cannot create shared memory: Too many open files; raise ulimit -n");
}

}  // namespace
}  // namespace heapprofd
