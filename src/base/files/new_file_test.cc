// What is there when a file is made, and when whoever makes it is killed meanwhile.
#include "base/files/new_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "base/files/write_all.h"

namespace heapprofd {
namespace {

class NewFileTest : public testing::Test {
 protected:
  NewFileTest() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }

  ~NewFileTest() override { std::filesystem::remove_all(folder_); }

  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.insert(entry.path().filename());
    return names;
  }

  static Status Write(const std::string& path, std::string_view text) {
    HPD_TRY_ASSIGN(NewFile file, NewFile::Create(path));
    EXPECT_EQ(WriteAll(file.fd(), text), 0);
    return file.Appear();
  }

  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string folder_ = testing::TempDir() + "/new_file_test.XXXXXX";
};

TEST_F(NewFileTest, ItAppearsWholeAndReplacesAnOlderOne) {
  const std::string path = folder_ + "/file";
  for (const char* const text : {"first", "second", "third"}) {
    ASSERT_TRUE(Write(path, text).ok());
    EXPECT_EQ(Read(path), text);
    EXPECT_EQ(Names(), std::set<std::string>{"file"});
  }

  struct stat status {};

  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(NewFileTest, OneThatIsNotWantedAnyMoreLeavesNothing) {
  {
    Result<NewFile> file = NewFile::Create(folder_ + "/file");
    ASSERT_TRUE(file.ok());
    const NewFile moved = std::move(file).value();
  }
  EXPECT_TRUE(Names().empty());
}

TEST_F(NewFileTest, ADirectoryIsNotReplaced) {
  const std::string path = folder_ + "/file";
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  const Status status = Write(path, "text");
  EXPECT_EQ(status.message(), "cannot create " + path + ": Is a directory");
  EXPECT_EQ(Names(), std::set<std::string>{"file"});
}

TEST_F(NewFileTest, AMissingDirectoryIsNamed) {
  const Result<NewFile> file = NewFile::Create(folder_ + "/none/file");
  EXPECT_EQ(file.status().message(),
            "cannot create " + folder_ + "/none/file: No such file or directory");
}

TEST_F(NewFileTest, OneWhoseWriterIsKilledLeavesNothing) {
  const int nameless = open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (nameless < 0)
    GTEST_SKIP() << "no files without names here";
  close(nameless);
  const pid_t child = fork();
  if (child == 0) {
    const Result<NewFile> file = NewFile::Create(folder_ + "/file");
    if (file.ok() && WriteAll(file.value().fd(), "half") == 0)
      raise(SIGKILL);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(Names().empty());
}

}  // namespace
}  // namespace heapprofd
