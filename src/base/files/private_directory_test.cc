// Only we may enter it; it goes with all that is in it, and only with the last owner.
#include "base/files/private_directory.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>

namespace heapprofd {
namespace {

TEST(PrivateDirectoryTest, IsOursAlone) {
  Result<PrivateDirectory> made = PrivateDirectory::Create("hpd-private");
  ASSERT_TRUE(made.ok()) << made.status().message();

  struct stat status {};

  ASSERT_EQ(stat(made.value().path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
}

TEST(PrivateDirectoryTest, GoesWithItsLastOwnerAndAllThatIsInIt) {
  Result<PrivateDirectory> made = PrivateDirectory::Create("hpd-private");
  ASSERT_TRUE(made.ok()) << made.status().message();
  const std::string path = made.value().path();
  std::filesystem::create_directory(path + "/sub");
  std::ofstream(path + "/sub/file") << "text";
  {
    std::optional<PrivateDirectory> owner(std::move(made.value()));
    EXPECT_TRUE(std::filesystem::exists(path + "/sub/file"));
    const PrivateDirectory last(std::move(*owner));
    owner.reset();
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(PrivateDirectoryTest, SaysWhereNoneCanBeMade) {
  setenv("TMPDIR", "/proc", 1);
  const Result<PrivateDirectory> made = PrivateDirectory::Create("hpd-private");
  unsetenv("TMPDIR");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().message().find("cannot create /proc/hpd-private-"), 0U)
      << made.status().message();
}

}  // namespace
}  // namespace heapprofd
