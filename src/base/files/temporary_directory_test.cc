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

TEST_F(TemporaryDirectoryTest, RootChoosesNoneInWhichOthersRename) {
  EXPECT_EQ(ChosenTemporaryDirectory(), own_);
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can have files of others";
  ASSERT_EQ(chmod(own_, 0777), 0);
  EXPECT_NE(TemporaryDirectory(), own_);
  EXPECT_EQ(ChosenTemporaryDirectory(), "/tmp");
  ASSERT_EQ(chmod(own_, 01777), 0);
  EXPECT_EQ(TemporaryDirectory(), own_);
  ASSERT_EQ(chown(own_, 4321, 4321), 0);
  EXPECT_NE(TemporaryDirectory(), own_);
  EXPECT_EQ(NamelessDirectory(), own_);
  // Where others can make it, they may do so when it is too late.
  setenv("TMPDIR", (std::string(own_) + "/missing").c_str(), 1);
  EXPECT_EQ(ChosenTemporaryDirectory(), "/tmp");
  // Who cannot use it says which it was.
  setenv("TMPDIR", "/nonexistent/directory", 1);
  EXPECT_EQ(ChosenTemporaryDirectory(), "/nonexistent/directory");
}

}  // namespace
}  // namespace heapprofd
