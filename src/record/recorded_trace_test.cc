// A recording whose only process never comes; what processes leave in a trace is in
// tests/e2e.
#include "record/recorded_trace.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

constexpr pid_t kNobody = 0x7fffffff;  // larger than any kernel gives

class RecordedTraceTest : public testing::Test {
 protected:
  RecordedTraceTest() {
    config_.sessions.emplace_back();
    config_.sessions[0].targets.pids = {kNobody};
    sessions_.push_back(Session::CreateWithoutSocket(config_.sessions[0]));
  }

  RecordingConfig config_;
  std::vector<std::unique_ptr<Session>> sessions_;
};

TEST_F(RecordedTraceTest, OneThatNeverCameIsInTheRestWithItsReason) {
  RecordedTrace trace(&config_, &sessions_, TraceFile::InMemory());
  ASSERT_TRUE(trace.WriteHead().ok());
  const uint64_t head = trace.size();
  ASSERT_TRUE(trace.WriteRest(1, {}).ok());
  EXPECT_GT(trace.size(), head);
  EXPECT_NE(trace.file().bytes().find("the process did not report: it is gone"),
            std::string_view::npos);
}

TEST_F(RecordedTraceTest, WhatCouldNotBeWrittenIsMadeAnewInMemory) {
  ScopedFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full.valid())
    GTEST_SKIP() << "there is no /dev/full here";
  RecordedTrace trace(&config_, &sessions_, TraceFile(std::move(full), "/full"));
  trace.Note(trace.WriteHead());
  EXPECT_FALSE(trace.WriteRest(1, {}).ok());
  const std::string message = trace.status().message();
  EXPECT_NE(message, "");
  trace.WriteAnew(1, {});
  EXPECT_EQ(trace.status().message(), message);
  EXPECT_TRUE(trace.file().is_in_memory());
  EXPECT_NE(trace.file().bytes().find("the process did not report: it is gone"),
            std::string_view::npos);
}

TEST_F(RecordedTraceTest, TheFirstErrorStands) {
  RecordedTrace trace(&config_, &sessions_, TraceFile::InMemory());
  trace.Note({});
  EXPECT_TRUE(trace.status().ok());
  trace.Note(Status(StatusCode::kIo, "first"));
  trace.Note(Status(StatusCode::kIo, "second"));
  trace.Note({});
  EXPECT_EQ(trace.status().message(), "first");
}

}  // namespace
}  // namespace heapprofd
