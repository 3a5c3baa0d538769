#include "hprof/mapped_input.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd_path.h"
#include "base/quiet_thread.h"
#include "base/test_child.h"
#include "hprof/lost_pages.h"

namespace heapprofd::hprof {
namespace {

TEST(MappedInputTest, AFileThatIsShortenedReadsAsZerosAndIsAnError) {
  std::string path = testing::TempDir() + "mapped_input_test.XXXXXX";
  const int fd = mkstemp(path.data());
  ASSERT_GE(fd, 0);
  const std::string bytes(size_t{1} << 20, 'x');
  ASSERT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  Result<MappedInput> input = MappedInput::Open(path);
  ASSERT_TRUE(input.ok());
  EXPECT_TRUE(input.value().Check().ok());
  ASSERT_EQ(ftruncate(fd, 10), 0);
  EXPECT_EQ(input.value().bytes()[0], 'x');
  EXPECT_EQ(input.value().bytes().back(), '\0');
  EXPECT_EQ(input.value().bytes()[bytes.size() / 2], '\0');
  const Status status = input.value().Check();
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_NE(status.message().find(path + ": it was shortened"), std::string::npos);
  close(fd);
  unlink(path.c_str());
}

TEST(MappedInputTest, WhatOthersMayWriteToIsCopied) {
  std::string path = testing::TempDir() + "mapped_input_test.XXXXXX";
  const ScopedFd file(mkstemp(path.data()));
  ASSERT_EQ(write(file.get(), "JAVA", 4), 4);
  for (const auto& [mode, is_copied] :
       {std::pair(0644, false), std::pair(0664, true), std::pair(0646, true)}) {
    ASSERT_EQ(fchmod(file.get(), static_cast<mode_t>(mode)), 0);
    const Result<MappedInput> input = MappedInput::Open(path);
    ASSERT_TRUE(input.ok());
    EXPECT_NE(input.value().file().has_value(), is_copied) << mode;
  }
  unlink(path.c_str());
}

TEST(MappedInputTest, AThreadThatBlocksSignalsReadsAShortenedFileToo) {
  const ScopedFd memory(memfd_create("x", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(memory.get(), 1 << 20), 0);
  Result<MappedInput> input = MappedInput::Map(ScopedFd(dup(memory.get())), "x");
  ASSERT_TRUE(input.ok());
  ASSERT_EQ(ftruncate(memory.get(), 0), 0);
  pthread_t thread{};
  char read = 'x';
  ASSERT_TRUE(StartQuietThread([&] { read = input.value().bytes()[1 << 19]; }, &thread));
  pthread_join(thread, nullptr);
  EXPECT_EQ(read, '\0');
  EXPECT_FALSE(input.value().Check().ok());
}

TEST(MappedInputTest, SoManyAreOpenAtATime) {
  std::vector<MappedInput> inputs;
  const auto add = [&] {
    const int fd = memfd_create("x", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(fd, 1), 0);
    return MappedInput::Map(ScopedFd(fd), "x");
  };
  while (inputs.size() < kMostGuarded) {
    Result<MappedInput> input = add();
    ASSERT_TRUE(input.ok());
    inputs.push_back(std::move(input).value());
  }
  EXPECT_EQ(add().status().message(),
            "cannot open x: 64 heap dumps are open already; open fewer at a time");
  inputs.pop_back();
  EXPECT_TRUE(add().ok());
}

TEST(MappedInputTest, WhatTheSystemRefusesIsNamed) {
  const ScopedFd memory(memfd_create("x", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(memory.get(), 4096), 0);
  const std::string path = FdPath(memory.get());
  ScopedFd written(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(MappedInput::Map(std::move(written), "x").status().message(),
            "cannot map x: Permission denied");
  const auto join = [] {
    return MappedInput::Concatenate({std::string(1 << 20, 'x')}, "x").status().message();
  };
  const std::optional<std::string> nowhere =
      SaidInChild(MakeTemporaryPlacesReadOnly, join);
  const std::optional<std::string> full = SaidInChild(
      [] {
        unsetenv("TMPDIR");
        return mount("tmpfs", "/tmp", "tmpfs", 0, "size=64k") == 0;
      },
      join);
  if (nowhere) {
    EXPECT_TRUE(nowhere->starts_with("cannot make a temporary file in /")) << *nowhere;
  }
  if (full) {
    EXPECT_EQ(*full, "cannot write a temporary file in /tmp: No space left on device");
  }
}

}  // namespace
}  // namespace heapprofd::hprof
