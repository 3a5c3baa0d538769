#include "attach/refusals.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <string>

#include "attach/placement.h"
#include "attach/thread/test_process.h"

namespace heapprofd {
namespace {

// As an ordinary user's process: nothing exempts it from its limits.
void DropCapabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> none{};
  syscall(SYS_capset, &header, none.data());
}

void Limit(__rlimit_resource kind, rlim_t most) {
  const rlimit limit{.rlim_cur = most, .rlim_max = most};
  setrlimit(kind, &limit);
}

// Why the client cannot be placed in a process that has done this.
std::string RefusalBy(const std::function<void()>& prepare) {
  std::array<int, 2> ready{};
  EXPECT_EQ(pipe(ready.data()), 0);
  const TestProcess child([&] {
    DropCapabilities();
    prepare();
    (void)!write(ready[1], "r", 1);
    PauseForEver();
  });
  char word = 0;
  EXPECT_EQ(read(ready[0], &word, 1), 1);
  close(ready[0]);
  close(ready[1]);
  const Result<RemoteProcess> process = RemoteProcess::Open(child.pid());
  EXPECT_TRUE(process.ok()) << process.status().message();
  if (!process.ok())
    return "";
  AllocatorFinder finder;
  const Result<PlacedClient> placed =
      PlaceClient(process.value(), {.ring_size = 65536}, &finder, /*held=*/nullptr);
  return placed.ok() ? "" : placed.status().message();
}

uint64_t MappedBytes(const std::string& field) {
  const std::string status = ReadProcFile("/proc/self/status", 16384);
  return strtoull(StatusField(status, field).c_str(), nullptr, 10) * 1024;
}

class MemoryRefusedTest : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer has mapped more than any limit";
#endif
  }
};

TEST_F(MemoryRefusedTest, TheLimitOnLockedMemoryIsNamed) {
  const std::string refusal = RefusalBy([] {
    Limit(RLIMIT_MEMLOCK, 65536);
    mlockall(MCL_FUTURE);
  });
  EXPECT_NE(
      refusal.find(" of memory for the profiler exceed the limit of what it may lock "
                   "(mlockall, RLIMIT_MEMLOCK), 0 MiB; raise it (prlimit --pid "),
      std::string::npos)
      << refusal;
  EXPECT_EQ(refusal.find("try again"), std::string::npos);
}

TEST_F(MemoryRefusedTest, TheLimitOnTheAddressSpaceIsNamed) {
  for (const uint64_t left : {uint64_t{1} << 16, uint64_t{1} << 20}) {
    const std::string refusal =
        RefusalBy([left] { Limit(RLIMIT_AS, MappedBytes("VmSize") + left); });
    EXPECT_NE(refusal.find("exceed the limit of its address space (RLIMIT_AS), "),
              std::string::npos)
        << refusal;
    EXPECT_NE(refusal.find(" --as=unlimited, as root)"), std::string::npos) << refusal;
  }
}

TEST_F(MemoryRefusedTest, TheLimitOnDataIsNamed) {
  const std::string refusal =
      RefusalBy([] { Limit(RLIMIT_DATA, MappedBytes("VmData") + 65536); });
  EXPECT_NE(refusal.find("exceed the limit of its data (RLIMIT_DATA), "),
            std::string::npos)
      << refusal;
}

TEST_F(MemoryRefusedTest, WithoutALimitTheKernelsWordsAreAllThatIsSaid) {
  const std::string refusal(MemoryRefused(getpid(), ENOMEM, 1).message());
  EXPECT_NE(
      refusal.find(": memory could not be mapped in it: Cannot allocate memory; see "
                   "how many mappings it has (vm.max_map_count) and how much memory "
                   "is free"),
      std::string::npos)
      << refusal;
  const Status race = MemoryRefused(getpid(), EEXIST, 1);
  EXPECT_EQ(race.code(), StatusCode::kTryAgain);
  EXPECT_NE(race.message().find(": it has just mapped memory where the profiler's was to "
                                "be; try again"),
            std::string::npos)
      << race.message();
}

}  // namespace
}  // namespace heapprofd
