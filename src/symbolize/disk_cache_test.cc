#include "symbolize/disk_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

class DiskCacheTest : public testing::Test {
 protected:
  DiskCacheTest()
      : directory_(fs::path(testing::TempDir()) /
                   ("disk_cache_" + std::to_string(getpid()) + "_" +
                    testing::UnitTest::GetInstance()->current_test_info()->name())) {}

  ~DiskCacheTest() override { fs::remove_all(directory_); }

  fs::path directory_;
};

TEST_F(DiskCacheTest, WhatIsStoredIsLoaded) {
  const DiskCache cache(directory_ / "below");
  cache.Store("name", "contents");
  EXPECT_EQ(cache.Load("name"), "contents");
  EXPECT_EQ(cache.Load("other"), std::nullopt);
  cache.Store("name", "newer");
  EXPECT_EQ(cache.Load("name"), "newer");
}

TEST_F(DiskCacheTest, WithoutADirectoryNothingIsKept) {
  const DiskCache cache("");
  cache.Store("name", "contents");
  EXPECT_EQ(cache.Load("name"), std::nullopt);
}

TEST_F(DiskCacheTest, DamagedFilesAreAsIfTheyWereNotThere) {
  const DiskCache cache(directory_);
  cache.Store("name", "contents");
  std::string bytes(fs::file_size(directory_ / "name"), '\0');
  std::ifstream(directory_ / "name").read(bytes.data(), static_cast<long>(bytes.size()));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_FALSE(UnsealCacheFile(damaged).has_value()) << i;
    EXPECT_FALSE(UnsealCacheFile(bytes.substr(0, i)).has_value()) << i;
  }
}

TEST_F(DiskCacheTest, FilesThatOthersMayChangeAreNotBelieved) {
  const DiskCache cache(directory_);
  cache.Store("name", "contents");
  chmod((directory_ / "name").c_str(), 0666);
  EXPECT_EQ(cache.Load("name"), std::nullopt);
}

// HOME that sudo keeps. Root alone can make such a directory.
TEST_F(DiskCacheTest, AnotherUsersHomeIsNoPlace) {
  constexpr uid_t kAnother = 61'002;
  fs::create_directory(directory_);
  for (const char* name : {"HOME", "XDG_CACHE_HOME"}) {
    unsetenv("XDG_CACHE_HOME");
    ASSERT_EQ(setenv(name, directory_.c_str(), 1), 0);
    EXPECT_NE(DiskCache::StandardDirectory(), "") << name;
    if (chown(directory_.c_str(), kAnother, kAnother) != 0)
      GTEST_SKIP() << "only root can make a directory another's";
    EXPECT_EQ(DiskCache::StandardDirectory(), "") << name;
    ASSERT_EQ(chown(directory_.c_str(), geteuid(), getegid()), 0);
  }
}

TEST_F(DiskCacheTest, LinksAreNotFollowed) {
  const DiskCache cache(directory_);
  cache.Store("name", "contents");
  fs::create_symlink(directory_ / "name", directory_ / "link");
  EXPECT_EQ(cache.Load("link"), std::nullopt);
}

TEST_F(DiskCacheTest, RootIsLedNowhereByAnotherUsersLink) {
  constexpr uid_t kAnother = 61'002;
  fs::create_directories(directory_ / "of_root/heapprofd");
  fs::permissions(directory_ / "of_root/heapprofd", fs::perms::owner_all);
  fs::create_directory_symlink("of_root", directory_ / "link");
  if (lchown((directory_ / "link").c_str(), kAnother, kAnother) != 0)
    GTEST_SKIP() << "only root can make a link another's";
  const DiskCache cache(directory_ / "link/heapprofd");
  cache.Store("name", "contents");
  EXPECT_TRUE(fs::is_empty(directory_ / "of_root/heapprofd"));
  EXPECT_EQ(cache.Load("name"), std::nullopt);
}

TEST_F(DiskCacheTest, TheFilesUsedLongestAgoMakeRoom) {
  const DiskCache cache(directory_, 3000);
  cache.Store("first", std::string(1000, '1'));
  cache.Store("second", std::string(1000, '2'));
  fs::last_write_time(directory_ / "first",
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  fs::last_write_time(directory_ / "second",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_TRUE(cache.Load("first").has_value());  // used now
  cache.Store("third", std::string(1000, '3'));
  EXPECT_TRUE(cache.Load("first").has_value());
  EXPECT_FALSE(cache.Load("second").has_value());
  EXPECT_TRUE(cache.Load("third").has_value());
}

}  // namespace
}  // namespace heapprofd
