// What else is refused, and taken, is in service_test.cc.
#include "service/recordings/recording_request.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>

#include <string>
#include <utility>
#include <vector>

#include "control.pb.h"
#include "service/finisher_environment.h"

namespace heapprofd {
namespace {

ScopedFd NullDevice() {
  return ScopedFd(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

// A regular file without a name.
ScopedFd NamelessFile() {
  FILE* const file = tmpfile();
  ScopedFd fd(fcntl(fileno(file), F_DUPFD_CLOEXEC, 0));
  fclose(file);
  return fd;
}

ControlMessage StartOf(const protos::StartRequest& request, std::vector<ScopedFd> fds) {
  return {.type = ControlType::kStart,
          .payload = request.SerializeAsString(),
          .fds = std::move(fds)};
}

TEST(RecordingRequestTest, WhatTheOwnerWantsAtTheEndIsKept) {
  protos::StartRequest request;
  request.set_trace_config("anything");
  request.set_trace_path("/there/trace");
  request.set_top(7);
  request.set_quiet(true);
  request.add_environment("LD_PRELOAD=/tmp/evil.so");
  request.add_environment("PATH=/own/bin:/bin");
  std::vector<ScopedFd> fds;
  fds.push_back(NamelessFile());
  fds.push_back(NullDevice());
  const Result<RecordingRequest> taken = TakeRequest(StartOf(request, std::move(fds)));
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  EXPECT_EQ(taken.value().trace_config, "anything");
  EXPECT_EQ(taken.value().trace.path(), "/there/trace");
  EXPECT_TRUE(taken.value().standard_error.valid());
  const FinishRequest& finish = taken.value().finish;
  EXPECT_FALSE(finish.directory.valid());
  EXPECT_EQ(finish.top, 7u);
  EXPECT_TRUE(finish.quiet);
  EXPECT_FALSE(finish.wants_dumps);
  EXPECT_EQ(finish.environment, std::vector<std::string>{"PATH=/own/bin:/bin"});
  EXPECT_EQ(finish.SearchPath(), "/own/bin:/bin");
  EXPECT_EQ(FinishRequest().SearchPath(), "");
}

TEST(RecordingRequestTest, ADeviceIsNoTrace) {
  std::vector<ScopedFd> fds;
  fds.push_back(NullDevice());
  fds.push_back(NullDevice());
  EXPECT_EQ(TakeRequest(StartOf({}, std::move(fds))).status().message(),
            "cannot record: the trace must go to a regular file");
}

// Or a recording without them would be finished as the service's starter wants his.
TEST(FinisherEnvironmentTest, NothingOfTheServicesOwnIsLeft) {
  for (const char* name : kFinisherVariables)
    setenv(name, "of-the-service", 1);
  const std::vector<std::string> own = {"LANG=C"};
  TakeFinisherEnvironment(own);
  for (const char* name : kFinisherVariables) {
    const char* value = getenv(name);
    EXPECT_STREQ(value, name == std::string("LANG") ? "C" : nullptr) << name;
  }
}

}  // namespace
}  // namespace heapprofd
