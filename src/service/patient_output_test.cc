#include "service/patient_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <future>
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
  }

  void TearDown() override { fclose(stream_); }

  void Open(int patience_ms) {
    MakePatient(&stream_, write_end_.get(), patience_ms);
    ASSERT_NE(stream_, nullptr);
  }

  ScopedFd read_end_;
  ScopedFd write_end_;
  FILE* stream_ = nullptr;
};

TEST_F(PatientOutputTest, WhatIsReadArrivesWhole) {
  Open(/*patience_ms=*/60'000);
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
  Open(/*patience_ms=*/20);
  signal(SIGPIPE, SIG_IGN);
  const std::string text(1'000'000, 'x');
  std::future<size_t> written = std::async(std::launch::async, [this, &text] {
    return fwrite(text.data(), 1, text.size(), stream_) +
           fwrite(text.data(), 1, text.size(), stream_);
  });
  EXPECT_EQ(written.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  read_end_.reset();                          // so that it comes to an end in any case
  EXPECT_EQ(written.get(), 2 * text.size());  // what is thrown away is no error
}

TEST_F(PatientOutputTest, AfterWhatWasThrownAwayNothingComes) {
  Open(/*patience_ms=*/20);
  const std::string text(1'000'000, 'x');
  fwrite(text.data(), 1, text.size(), stream_);
  std::string buffer(text.size(), '\0');
  size_t got = 0;
  for (pollfd readable{.fd = read_end_.get(), .events = POLLIN, .revents = 0};
       poll(&readable, 1, 0) == 1;)
    got += static_cast<size_t>(read(read_end_.get(), buffer.data(), buffer.size()));
  EXPECT_GT(got, 0u);
  EXPECT_LT(got, text.size());
  EXPECT_EQ(fwrite("more", 1, 4, stream_), 4u);
  pollfd readable{.fd = read_end_.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&readable, 1, 0), 0);
}

TEST_F(PatientOutputTest, TheDescriptorStaysAsItIs) {
  Open(/*patience_ms=*/20);
  EXPECT_EQ(fcntl(write_end_.get(), F_GETFL) & O_NONBLOCK, 0);
}

}  // namespace
}  // namespace heapprofd
