#include "service/patient_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

class PatientOutputTest : public testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
    read_end_ = ScopedFd(fds[0]);
    write_end_ = ScopedFd(fds[1]);
    MakePatient(&stream_, write_end_.get());
    ASSERT_NE(stream_, nullptr);
  }

  void TearDown() override { fclose(stream_); }

  ScopedFd read_end_;
  ScopedFd write_end_;
  FILE* stream_ = nullptr;
};

TEST_F(PatientOutputTest, WhatIsReadArrivesWhole) {
  const std::string text(300'000, 'x');
  size_t got = 0;
  std::thread reader([this, &got, size = text.size()] {
    std::string buffer(10'000, '\0');
    while (got < size)
      got += static_cast<size_t>(read(read_end_.get(), buffer.data(), buffer.size()));
  });
  EXPECT_EQ(fwrite(text.data(), 1, text.size(), stream_), text.size());
  reader.join();
  EXPECT_EQ(got, text.size());
}

TEST_F(PatientOutputTest, NobodyIsWaitedForForEver) {
  const std::string text(1'000'000, 'x');
  EXPECT_EQ(fwrite(text.data(), 1, text.size(), stream_), text.size());
  EXPECT_EQ(fwrite(text.data(), 1, text.size(), stream_), text.size());
}

TEST_F(PatientOutputTest, TheDescriptorStaysAsItIs) {
  EXPECT_EQ(fcntl(write_end_.get(), F_GETFL) & O_NONBLOCK, 0);
}

}  // namespace
}  // namespace heapprofd
