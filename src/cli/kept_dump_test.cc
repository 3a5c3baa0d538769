// What becomes of a dump that cannot be kept; tests/e2e/java_test.py has the others.
#include "cli/kept_dump.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/test_limits.h"

namespace heapprofd {
namespace {

TEST(KeptDumpTest, APlaceThatDoesNotExistIsNamed) {
  EXPECT_EQ(KeptDump::Create("/nonexistent/dump").status().message(),
            "cannot keep the dump as /nonexistent/dump: No such file or directory");
}

TEST(KeptDumpTest, WhatIsThereStays) {
  EXPECT_EQ(KeptDump::Create("/etc/passwd").status().message(),
            "cannot keep the dump as /etc/passwd: there is something of this name; name "
            "another file");
}

TEST(KeptDumpTest, NoLinkIsFollowed) {
  const std::string link = testing::TempDir() + "kept_dump_test_link";
  unlink(link.c_str());
  ASSERT_EQ(symlink("/nonexistent/victim", link.c_str()), 0);
  EXPECT_EQ(KeptDump::Create(link).status().message(),
            "cannot keep the dump as " + link +
                ": there is something of this name; name another file");
  unlink(link.c_str());
}

TEST(KeptDumpTest, WithoutDescriptorsThereIsNoRoomInMemory) {
  if (!kMayRunOutOfDescriptors)
    GTEST_SKIP() << "sanitizers need descriptors of their own";
  const ScopedLimit none(RLIMIT_NOFILE, 0);
  EXPECT_EQ(KeptDump::Create("").status().message(),
            "cannot make room for the dump in memory: Too many open files; raise ulimit "
            "-n");
}

}  // namespace
}  // namespace heapprofd
