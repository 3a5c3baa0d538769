// TMPDIR goes first, and a directory that cannot be written to is passed over.
#include "base/files/temporary_directory.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

namespace heapprofd {
namespace {

class TemporaryDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(own_), nullptr);
    ASSERT_EQ(setenv("TMPDIR", own_, 1), 0);
  }

  void TearDown() override {
    unsetenv("TMPDIR");
    rmdir(own_);
  }

  char own_[32] = "/tmp/hpd_temporary_XXXXXX";
};

TEST_F(TemporaryDirectoryTest, TheChosenOneGoesFirst) {
  EXPECT_EQ(TemporaryDirectory(), own_);
}

TEST_F(TemporaryDirectoryTest, OneThatIsGoneOrRelativeIsPassedOver) {
  for (const char* useless : {"/nonexistent/directory", "relative", ""}) {
    setenv("TMPDIR", useless, 1);
    EXPECT_TRUE(TemporaryDirectory().starts_with("/")) << useless;
    EXPECT_NE(TemporaryDirectory(), useless);
  }
}

TEST_F(TemporaryDirectoryTest, TheCallerMayWantMore) {
  chmod(own_, 0700);
  EXPECT_FALSE(IsOpenToAll(own_));
  EXPECT_NE(TemporaryDirectory(IsOpenToAll), own_);
  chmod(own_, 0711);
  EXPECT_EQ(TemporaryDirectory(IsOpenToAll), own_);
}

}  // namespace
}  // namespace heapprofd
