#include "hprof/mapped_input.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

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

}  // namespace
}  // namespace heapprofd::hprof
