#include "base/files/write_all.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <thread>

#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

TEST(WriteAllTest, APipeThatTakesLittleGetsAll) {
  std::array<int, 2> fds{};
  ASSERT_EQ(pipe2(fds.data(), O_CLOEXEC), 0);
  const ScopedFd from(fds[0]);
  ScopedFd to(fds[1]);
  const std::string sent(1 << 20, 'x');  // more than it holds
  std::string got;
  std::thread reader([&] {
    std::array<char, 1000> piece{};
    ssize_t count = 0;
    while ((count = read(from.get(), piece.data(), piece.size())) > 0)
      got.append(piece.data(), static_cast<size_t>(count));
  });
  EXPECT_EQ(WriteAll(to.get(), sent), 0);
  to.reset();
  reader.join();
  EXPECT_EQ(got, sent);
}

TEST(WriteAllTest, TheCauseOfAFailureIsTold) {
  const ScopedFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(WriteAll(full.get(), "x"), ENOSPC);
  EXPECT_EQ(WriteAll(full.get(), ""), 0);
  EXPECT_EQ(WriteAll(-1, "x"), EBADF);
}

}  // namespace
}  // namespace heapprofd
