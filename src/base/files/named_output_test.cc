// What stands at a named place afterwards, and what was written into.
#include "base/files/named_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "base/fd_path.h"
#include "base/files/write_all.h"

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kMallory = 4321;

class NamedOutputTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "named_output_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    std::ofstream(directory_ / "victim") << "precious";
  }

  void TearDown() override { fs::remove_all(directory_); }

  // Empty: it was written.
  static std::string Write(const std::string& path, std::string_view text = "text") {
    Result<NamedOutput> output = OpenNamedOutput(path);
    if (!output.ok())
      return output.status().message();
    NamedOutput& opened = output.value();
    const int error =
        WriteAll(opened.file ? opened.file->fd() : opened.stream.get(), text);
    if (error != 0)
      return Status::FromErrno("cannot write", error).message();
    return opened.file ? opened.file->Appear().message() : "";
  }

  std::string At(const char* name) const { return directory_ / name; }

  std::string TextOf(const char* name) const {
    std::ifstream file(directory_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  mode_t KindOf(const char* name) const {
    struct stat status {};

    return lstat(At(name).c_str(), &status) == 0 ? status.st_mode & S_IFMT : 0;
  }

  fs::path directory_;
};

TEST_F(NamedOutputTest, AFileIsReplacedWhenTheNewOneIsWhole) {
  const ScopedFd old(open(At("victim").c_str(), O_RDONLY | O_CLOEXEC));
  {
    const Result<NamedOutput> unfinished = OpenNamedOutput(At("victim"));
    ASSERT_TRUE(unfinished.ok());
  }
  EXPECT_EQ(TextOf("victim"), "precious");
  EXPECT_EQ(Write(At("victim")), "");
  EXPECT_EQ(TextOf("victim"), "text");
  std::array<char, 8> kept{};
  EXPECT_EQ(read(old.get(), kept.data(), kept.size()), 8);
  EXPECT_EQ(Write(At("new")), "");
  EXPECT_EQ(TextOf("new"), "text");
}

TEST_F(NamedOutputTest, WhatALinkLeadsToIsReplacedAndTheLinkStays) {
  fs::create_directory(directory_ / "sub");
  fs::create_symlink("../victim", directory_ / "sub" / "inner");
  fs::create_symlink("sub/inner", directory_ / "link");
  EXPECT_EQ(Write(At("link")), "");
  EXPECT_EQ(KindOf("link"), static_cast<mode_t>(S_IFLNK));
  EXPECT_EQ(KindOf("sub/inner"), static_cast<mode_t>(S_IFLNK));
  EXPECT_EQ(KindOf("victim"), static_cast<mode_t>(S_IFREG));
  EXPECT_EQ(TextOf("victim"), "text");
}

TEST_F(NamedOutputTest, WhatALinkLeadsToIsMade) {
  fs::create_symlink(directory_ / "new", directory_ / "link");
  EXPECT_EQ(Write(At("link")), "");
  EXPECT_EQ(KindOf("link"), static_cast<mode_t>(S_IFLNK));
  EXPECT_EQ(TextOf("new"), "text");
}

TEST_F(NamedOutputTest, LinksThatLeadNowhereEnd) {
  fs::create_symlink("one", directory_ / "other");
  fs::create_symlink("other", directory_ / "one");
  EXPECT_EQ(Write(At("one")),
            "cannot create " + At("one") + ": Too many levels of symbolic links");
}

TEST_F(NamedOutputTest, APipeIsWrittenInto) {
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", directory_ / "link");
  const ScopedFd reader(open(At("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(Write(At("pipe"), "one "), "");
  EXPECT_EQ(Write(At("link"), "two"), "");
  std::array<char, 8> text{};
  ASSERT_EQ(read(reader.get(), text.data(), text.size()), 7);
  EXPECT_EQ(std::string_view(text.data(), 7), "one two");
  EXPECT_EQ(KindOf("pipe"), static_cast<mode_t>(S_IFIFO));
}

TEST_F(NamedOutputTest, ADeviceIsWrittenInto) {
  if (mknod(At("null").c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0 ||
      mknod(At("full").c_str(), S_IFCHR | 0600, makedev(1, 7)) != 0 ||
      !ScopedFd(open(At("null").c_str(), O_WRONLY | O_CLOEXEC)).valid())
    GTEST_SKIP() << "no devices can be made here";
  EXPECT_EQ(Write(At("null")), "");
  EXPECT_EQ(Write(At("full")), "cannot write: No space left on device");
  EXPECT_EQ(KindOf("null"), static_cast<mode_t>(S_IFCHR));
  EXPECT_EQ(KindOf("full"), static_cast<mode_t>(S_IFCHR));
}

TEST_F(NamedOutputTest, ADirectoryIsToldBeforeAnythingIsWritten) {
  fs::create_directory_symlink(directory_, directory_ / "link");
  for (const std::string& path :
       {directory_.string(), directory_.string() + "/", At("link"), At(".")})
    EXPECT_EQ(Write(path),
              "cannot create " + path + ": it is a directory; name a file in it");
}

TEST_F(NamedOutputTest, AnOwnDescriptorGoesOnWhereItIs) {
  const ScopedFd file(open(At("victim").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  EXPECT_EQ(Write(FdPath(file.get()), " text"), "");
  fs::create_symlink("/dev/fd/" + std::to_string(file.get()), directory_ / "link");
  EXPECT_EQ(Write(At("link"), "."), "");
  EXPECT_EQ(TextOf("victim"), "precious text.");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const ScopedFd reader(ends[0]);
  const ScopedFd writer(ends[1]);
  EXPECT_EQ(Write("/dev/fd/" + std::to_string(writer.get())), "");
  std::array<char, 8> text{};
  EXPECT_EQ(read(reader.get(), text.data(), text.size()), 4);
}

TEST_F(NamedOutputTest, ASocketIsNotReplaced) {
  ASSERT_EQ(mknod(At("socket").c_str(), S_IFSOCK | 0600, 0), 0);
  EXPECT_EQ(Write(At("socket")),
            "cannot write " + At("socket") + ": No such device or address");
  EXPECT_EQ(KindOf("socket"), static_cast<mode_t>(S_IFSOCK));
}

TEST_F(NamedOutputTest, ALinkOfAnotherUserIsNotFollowed) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can make others' links";
  fs::create_symlink(At("victim"), directory_ / "link");
  ASSERT_EQ(lchown(At("link").c_str(), kMallory, kMallory), 0);
  const std::string refused =
      "cannot create " + At("link") + ": it is a link of user 4321; remove it, or name ";
  EXPECT_TRUE(Write(At("link")).starts_with(refused));
  // One of root's in a directory of another user, who may have renamed it.
  fs::create_directory(directory_ / "his");
  ASSERT_EQ(chown(At("his").c_str(), kMallory, kMallory), 0);
  fs::create_symlink(At("victim"), directory_ / "his" / "link");
  EXPECT_NE(Write(At("his/link")).find("it is a link of user 4321"), std::string::npos);
  EXPECT_EQ(TextOf("victim"), "precious");
}

TEST_F(NamedOutputTest, RootWritesIntoNoPipeOfAnotherUser) {
  if (geteuid() != 0)
    GTEST_SKIP() << "others cannot make one";
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
  ASSERT_EQ(chown(At("pipe").c_str(), kMallory, kMallory), 0);
  EXPECT_EQ(Write(At("pipe")),
            "cannot write " + At("pipe") +
                ": it belongs to user 4321; remove it, or name another file");
}

}  // namespace
}  // namespace heapprofd
