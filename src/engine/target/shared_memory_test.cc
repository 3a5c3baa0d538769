// What a target may do to the files it shares, and what is said when there are none.
#include "engine/target/shared_memory.h"

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

ScopedFd File(int seals) {
  ScopedFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

std::string ErrorOf(const Result<std::unique_ptr<SharedMemory>>& memory) {
  return memory.ok() ? "" : memory.status().message();
}

TEST(SharedMemoryTest, FilesOfATargetAreUsedOnlyIfTheyCanBeWrittenAndSealed) {
  EXPECT_EQ(ErrorOf(SharedMemory::Adopt(File(0), File(0), kRing)), "");
  EXPECT_EQ(ErrorOf(SharedMemory::Adopt(File(F_SEAL_SEAL), File(0), kRing)),
            "cannot seal shared memory: Operation not permitted");
  EXPECT_EQ(ErrorOf(SharedMemory::Adopt(File(F_SEAL_GROW), File(0), kRing)),
            "cannot size shared memory: Operation not permitted");
  EXPECT_EQ(ErrorOf(SharedMemory::Adopt(File(F_SEAL_WRITE), File(0), kRing)),
            "cannot map shared memory: Operation not permitted");
  EXPECT_EQ(ErrorOf(SharedMemory::Adopt(File(0), File(F_SEAL_WRITE), kRing)),
            "cannot map the ring: Operation not permitted");
}

TEST(SharedMemoryTest, FilesThatAreInUseCannotBeMadeShorter) {
  ScopedFd engine = File(0);
  ScopedFd client = File(0);
  const ScopedFd of_engine(dup(engine.get()));
  const ScopedFd of_client(dup(client.get()));
  const auto memory = SharedMemory::Adopt(std::move(engine), std::move(client), kRing);
  ASSERT_TRUE(memory.ok());
  for (const ScopedFd* file : {&of_engine, &of_client}) {
    EXPECT_EQ(ftruncate(file->get(), 0), -1);
    EXPECT_EQ(errno, EPERM);
  }
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
