// Paths that LD_PRELOAD cannot hold get a link that it can.
#include "cli/record/preload_path.h"

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/test_child.h"

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

TEST(PreloadPathTest, AnOrdinaryPathIsUsedAsItIs) {
  Result<PreloadPath> path = PreloadPath::For("/usr/lib/heapprofd/libx.so");
  ASSERT_TRUE(path.ok());
  EXPECT_EQ(path.value().text(), "/usr/lib/heapprofd/libx.so");
}

TEST(PreloadPathTest, WithAFolderForEachPlatformTheLoaderChoosesOne) {
  const auto* platform = reinterpret_cast<const char*>(getauxval(AT_PLATFORM));
  ASSERT_NE(platform, nullptr);
  std::string folder = testing::TempDir() + "preload_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string library = folder + "/libx.so";
  fs::create_directories(folder + "/platforms/another");
  std::ofstream(folder + "/platforms/another/libx.so") << "x";
  EXPECT_EQ(PreloadPath::For(library).value().text(), library);
  fs::rename(folder + "/platforms/another", folder + "/platforms/" + platform);
  EXPECT_EQ(PreloadPath::For(library).value().text(),
            folder + "/platforms/$PLATFORM/libx.so");
  fs::remove_all(folder);
}

TEST(PreloadPathTest, APathWithSeparatorsIsReachedByALinkThatGoesWithIt) {
  for (const char* library :
       {"/opt/a b/libx.so", "/opt/a:b/libx.so", "/opt/$b/libx.so"}) {
    std::string link;
    {
      Result<PreloadPath> path = PreloadPath::For(library);
      ASSERT_TRUE(path.ok()) << path.status().message();
      link = path.value().text();
      EXPECT_EQ(link.find_first_of(" :$"), std::string::npos) << link;
      EXPECT_TRUE(link.ends_with("/libx.so"));
      EXPECT_EQ(fs::read_symlink(fs::path(link).parent_path()),
                fs::path(library).parent_path());
    }
    EXPECT_FALSE(fs::exists(fs::path(link).parent_path().parent_path())) << link;
  }
}

TEST(PreloadPathTest, WhereNoLinkCanBeMadeThatIsSaid) {
  const std::optional<std::string> said = SaidInChild(MakeTemporaryPlacesReadOnly, [] {
    return PreloadPath::For("/opt/a b/libx.so").status().message();
  });
  if (!said)
    GTEST_SKIP() << "nothing can be mounted here";
  EXPECT_TRUE(
      said->starts_with("cannot preload /opt/a b/libx.so: LD_PRELOAD cannot name a path "
                        "with blanks, colons "
                        "or $, and a link to it cannot be made as /"))
      << *said;
}

TEST(PreloadPathTest, WhenItIsKeptTheLinkStays) {
  std::string link;
  {
    Result<PreloadPath> path = PreloadPath::For("/opt/a b/libx.so");
    ASSERT_TRUE(path.ok()) << path.status().message();
    path.value().Keep();
    link = path.value().text();
  }
  const fs::path folder = fs::path(link).parent_path();
  EXPECT_TRUE(fs::is_symlink(fs::symlink_status(folder)));
  fs::remove_all(folder.parent_path());
}

TEST(PreloadPathTest, ARuntimeDirectoryWithABlankIsNoPlaceForTheLink) {
  const char* old = getenv("XDG_RUNTIME_DIR");
  const std::optional<std::string> saved =
      old != nullptr ? std::optional<std::string>(old) : std::nullopt;
  std::string parent = testing::TempDir() + "a b XXXXXX";
  ASSERT_NE(mkdtemp(parent.data()), nullptr);
  setenv("XDG_RUNTIME_DIR", parent.c_str(), 1);
  {
    Result<PreloadPath> path = PreloadPath::For("/opt/a b/libx.so");
    ASSERT_TRUE(path.ok()) << path.status().message();
    EXPECT_EQ(path.value().text().find(' '), std::string::npos);
  }
  if (saved)
    setenv("XDG_RUNTIME_DIR", saved->c_str(), 1);
  else
    unsetenv("XDG_RUNTIME_DIR");
  fs::remove_all(parent);
}

}  // namespace
}  // namespace heapprofd
