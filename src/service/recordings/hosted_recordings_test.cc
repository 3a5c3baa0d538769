#include "service/recordings/hosted_recordings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

namespace heapprofd {
namespace {

constexpr size_t kOwner = 3;
constexpr size_t kOther = 4;

class HostedRecordingsTest : public testing::Test {
 protected:
  // With a session that nobody belongs to.
  HostedRecording* AddOne(size_t owner, const std::string& unique_name = "") {
    RecordingConfig config;
    config.sessions.emplace_back();
    config.sessions[0].targets.names = {"nobody-has-this-name"};
    config.unique_name = unique_name;
    auto hosted =
        std::make_unique<HostedRecording>(std::move(config),
                                          RecordingRequest{.trace_config = "",
                                                           .trace = TraceFile::InMemory(),
                                                           .standard_error = ScopedFd(),
                                                           .finish = {}},
                                          owner);
    EXPECT_TRUE(hosted->recording().Begin().ok());
    HostedRecording* const added = hosted.get();
    recordings_.Add(std::move(hosted));
    return added;
  }

  HostedRecordings recordings_;
};

TEST_F(HostedRecordingsTest, EachHasItsTurnAndIsTold) {
  EXPECT_EQ(recordings_.Serve([](HostedRecording&) {}), -1);
  AddOne(kOwner);
  AddOne(kOther);
  std::vector<size_t> first;
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<size_t> told;
    EXPECT_GE(recordings_.Serve([&told](const HostedRecording& hosted) {
      told.push_back(hosted.owner());
    }),
              0);
    EXPECT_EQ(told.size(), 2u);
    first.push_back(told.front());
  }
  EXPECT_NE(first[0], first[1]);  // in the next turn it is another one
  EXPECT_EQ(recordings_.sessions().size(), 2u);
}

TEST_F(HostedRecordingsTest, WhatOneCommandOwnsEndsWithoutTheOthers) {
  AddOne(kOwner);
  const HostedRecording* const other = AddOne(kOther);
  AddOne(kOwner);
  EXPECT_EQ(recordings_.FindOver(), nullptr);
  recordings_.StopOf(kOwner);
  for (int i = 0; i < 2; ++i) {
    const HostedRecording* const over = recordings_.FindOver();
    ASSERT_NE(over, nullptr);
    EXPECT_EQ(over->owner(), kOwner);
    recordings_.Remove(over);
  }
  EXPECT_EQ(recordings_.FindOver(), nullptr);
  EXPECT_EQ(recordings_.size(), 1u);
  recordings_.StopAll();
  EXPECT_EQ(recordings_.FindOver(), other);
}

TEST_F(HostedRecordingsTest, ADumpIsOfAllOrOfThoseOfAnOwner) {
  const HostedRecording* const first = AddOne(kOwner);
  const HostedRecording* const other = AddOne(kOther);
  const HostedRecording* const second = AddOne(kOwner);
  EXPECT_EQ(recordings_.Dump("all"), 3u);
  EXPECT_EQ(recordings_.DumpOf(kOwner, "own"), 2u);
  EXPECT_EQ(recordings_.DumpOf(kOther + 1, "none"), 0u);
  EXPECT_EQ(first->recording().dump_rounds(), 2u);
  EXPECT_EQ(second->recording().dump_rounds(), 2u);
  EXPECT_EQ(other->recording().dump_rounds(), 1u);
}

TEST_F(HostedRecordingsTest, ThereIsALimitToWhichThoseThatAreFinishedCount) {
  const size_t limit = geteuid() == 0 ? 256 : 64;
  AddOne(kOwner);
  EXPECT_TRUE(recordings_.CheckRoom(limit - 2).ok());
  EXPECT_EQ(recordings_.CheckRoom(limit - 1).message(),
            "cannot record: 1 recordings of this user run already, and " +
                std::to_string(limit - 1) + " are being finished; stop one");
}

TEST_F(HostedRecordingsTest, ANameIsUniqueAmongThoseThatRun) {
  const HostedRecording* const named = AddOne(kOwner, "mine");
  RecordingConfig config;
  EXPECT_TRUE(recordings_.CheckUnique(config).ok());
  config.unique_name = "mine";
  EXPECT_FALSE(recordings_.CheckUnique(config).ok());
  recordings_.Remove(named);
  EXPECT_TRUE(recordings_.CheckUnique(config).ok());
}

}  // namespace
}  // namespace heapprofd
