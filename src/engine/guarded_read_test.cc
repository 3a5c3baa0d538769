#include "engine/guarded_read.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

constexpr uint64_t kShortNs = 1'000'000;
constexpr uint64_t kLongNs = 60'000'000'000;
constexpr uid_t kMallory = 61001;
constexpr uid_t kAlice = 61002;

class GuardedReadTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "guarded-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    std::ofstream(folder_ + "/file") << "some text";
    // Opening it waits until somebody writes.
    ASSERT_EQ(mkfifo((folder_ + "/hangs").c_str(), 0600), 0);
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  // What was left behind comes to its end.
  void Release() const {
    for (const uint64_t end = MonotonicNs() + kLongNs; MonotonicNs() < end;) {
      ScopedFd(open((folder_ + "/hangs").c_str(), O_RDWR | O_CLOEXEC));
      if (ReadGuarded(folder_ + "/file", kMallory, 100, kLongNs) == "some text")
        return;
    }
    ADD_FAILURE() << "it is never read again";
  }

  std::string folder_;
};

TEST_F(GuardedReadTest, WhatCanBeReadIsRead) {
  EXPECT_EQ(ReadGuarded(folder_ + "/file", kMallory, 100, kLongNs), "some text");
  EXPECT_EQ(ReadGuarded(folder_ + "/file", kMallory, 4, kLongNs), "some");
  EXPECT_EQ(ReadGuarded(folder_ + "/none", kMallory, 4, kLongNs), "");
}

TEST_F(GuardedReadTest, WhoMakesUsWaitIsLeftAndOthersAreRead) {
  EXPECT_EQ(ReadGuarded(folder_ + "/hangs", kMallory, 100, kShortNs), "");
  EXPECT_EQ(ReadGuarded(folder_ + "/file", kMallory, 100, kLongNs), "");
  EXPECT_EQ(ReadGuarded(folder_ + "/file", kAlice, 100, kLongNs), "some text");
  Release();
}

TEST_F(GuardedReadTest, ItsOwnProcessIsReadAsItIs) {
  EXPECT_NE(ReadMemoryFile(getpid(), "cmdline", 4096).find("guarded_read_test"),
            std::string::npos);
}

}  // namespace
}  // namespace heapprofd
