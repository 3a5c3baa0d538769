// Packages by the files they have brought.
#include "cli/results/debian_package.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace heapprofd {
namespace {

class DebianPackageTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(lists_), nullptr);
    Write("libfoo1:amd64.list", "/.\n/usr\n/usr/lib/libfoo.so.1\n");
    Write("libc6:amd64.list", "/lib/x86_64-linux-gnu/libc.so.6\n");
    Write("tools.list", "/opt/usr/bin/tool\n/usr/bin/tool.1\n/usr/bin/tool");
    Write("libc6:amd64.md5sums", "/usr/bin/other\n");
  }

  void TearDown() override { std::filesystem::remove_all(lists_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(std::string(lists_) + "/" + name) << text;
  }

  char lists_[32] = "/tmp/hpd_lists_XXXXXX";
};

TEST_F(DebianPackageTest, TheListThatHasTheFileNamesThePackage) {
  EXPECT_EQ(DebianPackageOf("/usr/lib/libfoo.so.1", lists_), "libfoo1");
}

TEST_F(DebianPackageTest, FilesInUsrMayBeListedWithoutIt) {
  EXPECT_EQ(DebianPackageOf("/usr/lib/x86_64-linux-gnu/libc.so.6", lists_), "libc6");
}

TEST_F(DebianPackageTest, LinesThatHaveThePathAreOtherFiles) {
  EXPECT_EQ(DebianPackageOf("/usr/bin/tool", lists_), "tools");
  EXPECT_FALSE(DebianPackageOf("/bin/tool.2", lists_));
}

// Which of them come first is a guess by name; the contents decide.
TEST_F(DebianPackageTest, AListOfASimilarNameIsNotTakenForIt) {
  Write("libbar-2:amd64.list", "/usr/lib/libBar-3.so\n");
  Write("another.list", "/usr/lib/libBar-2.so.1\n");
  EXPECT_EQ(DebianPackageOf("/usr/lib/libBar-2.so.1", lists_), "another");
}

TEST_F(DebianPackageTest, OtherFilesAreNobodys) {
  EXPECT_FALSE(DebianPackageOf("/usr/lib/libfoo.so", lists_));
  EXPECT_FALSE(DebianPackageOf("/usr/bin/other", lists_));
  EXPECT_FALSE(DebianPackageOf("/usr/lib/libfoo.so.1", "/nonexistent"));
}

}  // namespace
}  // namespace heapprofd
