// Which places of the environment root goes to.
#include "base/files/root_environment.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

class RootEnvironmentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/environmentXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    place_ = fs::canonical(pattern);
    for (const char* name : {"own", "theirs", "theirs/mine", "open"})
      fs::create_directory(place_ / name);
    fs::permissions(place_ / "open", fs::perms::all);
    fs::create_directory_symlink("own", place_ / "link");
    if (geteuid() != 0)
      return;
    constexpr uid_t kOther = 61001;
    ASSERT_EQ(chown((place_ / "theirs").c_str(), kOther, kOther), 0);
    fs::create_directory_symlink("own", place_ / "their_link");
    ASSERT_EQ(lchown((place_ / "their_link").c_str(), kOther, kOther), 0);
  }

  void TearDown() override { fs::remove_all(place_); }

  bool IsOwn(const std::string& name) const {
    return IsOwnAlone((place_ / name).string());
  }

  fs::path place_;
};

TEST_F(RootEnvironmentTest, ADirectoryIsOwnIfOthersAlterNothingOnTheWayOrInIt) {
  EXPECT_TRUE(IsOwn("own"));
  EXPECT_TRUE(IsOwn("link"));
  EXPECT_FALSE(IsOwn("open"));
  EXPECT_FALSE(IsOwn("none"));
  EXPECT_FALSE(IsOwnAlone("/tmp"));
  if (geteuid() != 0)
    return;
  EXPECT_FALSE(IsOwn("theirs"));
  EXPECT_FALSE(IsOwn("theirs/mine"));
  EXPECT_FALSE(IsOwn("their_link"));
}

TEST_F(RootEnvironmentTest, RootForgetsForeignPlacesAndKeepsItsOwn) {
  if (geteuid() != 0)
    GTEST_SKIP() << "others keep all";
  setenv("HOME", (place_ / "theirs").c_str(), 1);
  setenv("XDG_CACHE_HOME", (place_ / "own").c_str(), 1);
  setenv("TERMINFO", (place_ / "their_link").c_str(), 1);
  ForgetForeignPlaces();
  EXPECT_EQ(getenv("HOME"), nullptr);
  EXPECT_EQ(getenv("TERMINFO"), nullptr);
  EXPECT_STREQ(getenv("XDG_CACHE_HOME"), (place_ / "own").c_str());
  EXPECT_EQ(RootsHome().front(), '/');
}

TEST_F(RootEnvironmentTest, ProgramsAreLookedUpWhereOthersPutNone) {
  const std::string own = (place_ / "own").string();
  setenv("PATH", (own + ":" + (place_ / "open").string()).c_str(), 1);
  EXPECT_EQ(TrustedPath(), geteuid() == 0 ? own : own + ":" + (place_ / "open").string());
  setenv("PATH", (place_ / "open").c_str(), 1);
  EXPECT_EQ(TrustedPath(), geteuid() == 0 ? "" : (place_ / "open").string());
}

}  // namespace
}  // namespace heapprofd
