// A process that does nothing but compute with vectors of SVE has them as they were, also
// when one of its threads was borrowed: the only one that it has.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "attach/attached_process.h"

// hpd_test_compute(const uint32_t* end): until that is not 0. Vectors and a predicate are
// set once, and compared all the time. Returns 0 when they are the same at the end.
asm(R"(
  .arch_extension sve
  .text
  .p2align 4
  .globl hpd_test_compute
hpd_test_compute:
  ptrue p0.b
  index z0.b, #1, #1
  index z17.b, #3, #1
1: ptrue p1.b
  index z1.b, #1, #1
  cmpne p2.b, p1/z, z0.b, z1.b
  b.any 2f
  index z1.b, #3, #1
  cmpne p2.b, p1/z, z17.b, z1.b
  b.any 2f
  cntp x1, p1, p0.b
  cntb x2
  cmp x1, x2
  b.ne 2f
  ldr w1, [x0]
  cbz w1, 1b
  mov w0, #0
  ret
2: mov w0, #1
  ret
)");

extern "C" int hpd_test_compute(const std::atomic<uint32_t>* end);

namespace heapprofd {
namespace {

TEST(VectorsTest, OfABorrowedThreadAreAsTheyWere) {
  constexpr unsigned long kHasSve = 1ul << 22;  // HWCAP_SVE
  if ((getauxval(AT_HWCAP) & kHasSve) == 0)
    GTEST_SKIP() << "no SVE here";
  auto* const words = static_cast<std::atomic<uint32_t>*>(
      mmap(nullptr, sizeof(uint32_t) * 2, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::atomic<uint32_t>& end = words[0];
  std::atomic<uint32_t>& has_begun = words[1];
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    has_begun = 1;
    _exit(hpd_test_compute(&end));
  }
  while (has_begun == 0)
    usleep(100);
  AllocatorFinder finder;
  for (int i = 0; i < 5; ++i) {
    const auto attached = AttachedProcess::Place(child, {.ring_size = 65536}, &finder);
    ASSERT_TRUE(attached.ok()) << attached.status().message();
    EXPECT_TRUE(attached.value()->PutHooksIn().ok());
    EXPECT_TRUE(attached.value()->TakeHooksOut().ok());
  }
  end = 1;
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  munmap(words, sizeof(uint32_t) * 2);
}

}  // namespace
}  // namespace heapprofd
