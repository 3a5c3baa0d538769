// The figures for scripts, of a real recording from launch to the file.
#include "cli/results/stats_json.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/record/launch.h"
#include "cli/record/program_run.h"

namespace heapprofd {
namespace {

class StatsJsonTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "stats_json_test." + std::to_string(getpid());
  }

  void TearDown() override {
    unsetenv("HEAPPROFD_STATS_JSON");
    std::filesystem::remove(path_);
    std::filesystem::remove(path_ + ".trace");
  }

  // Records the program known_stacks completely.
  void Record() {
    SessionConfig config;
    config.interval_bytes = 1;
    Result<std::unique_ptr<Session>> session = Session::Create(config);
    ASSERT_TRUE(session.ok()) << session.status().message();
    std::vector<std::unique_ptr<Session>> sessions;
    sessions.push_back(std::move(session).value());
    Result<TraceFile> trace = TraceFile::Create(path_ + ".trace");
    ASSERT_TRUE(trace.ok()) << trace.status().message();
    recording_ = std::make_unique<TraceRecording>(RecordingConfig(), std::move(sessions),
                                                  std::move(trace).value());
    ASSERT_TRUE(recording_->Begin().ok());
    const Result<std::string> preload = FindPreloadLibrary();
    ASSERT_TRUE(preload.ok()) << preload.status().message();
    SteeringSignals signals;
    LiveView view(nullptr);
    StatusLine status_line(/*is_wanted=*/false);
    const Launched launched =
        Launch({HPD_TEST_PROGRAMS "/exits", "return"}, preload.value(),
               {.mask = signals.original_mask()},
               [&](pid_t pid) { return recording_->sessions()[0]->EnvironmentFor(pid); });
    ASSERT_GT(launched.pid, 0) << launched.error.message;
    EXPECT_EQ(
        ProgramRun(recording_.get(), &view, &status_line, &signals).Run(launched.pid), 7);
    recording_->Stop(StopCause::kRequested);
  }

  // The number behind a key; -1 when it is missing.
  static double Figure(const std::string& json, const std::string& key) {
    const size_t at = json.find("\"" + key + "\":");
    return at != std::string::npos ? atof(json.c_str() + at + key.size() + 3) : -1;
  }

  std::string path_;
  std::unique_ptr<TraceRecording> recording_;
};

TEST_F(StatsJsonTest, FiguresOfARealRunAreTheProgramsOwn) {
  ASSERT_NO_FATAL_FAILURE(Record());
  setenv("HEAPPROFD_STATS_JSON", path_.c_str(), 1);
  const Status status = WriteStatsJson(*recording_, {});
  ASSERT_TRUE(status.ok()) << status.message();
  std::ifstream file(path_);
  const std::string json(std::istreambuf_iterator<char>(file), {});
  EXPECT_TRUE(json.starts_with("{\"version\":2,") && json.ends_with("}\n")) << json;
  EXPECT_EQ(Figure(json, "processes"), 1);
  EXPECT_EQ(Figure(json, "unrecorded"), 0);
  EXPECT_GE(Figure(json, "alloc_calls"), 1000);
  EXPECT_LT(Figure(json, "alloc_calls"), 1100);
  EXPECT_EQ(Figure(json, "samples"), Figure(json, "alloc_calls"));
  EXPECT_EQ(Figure(json, "samples"),
            Figure(json, "walked_samples") + Figure(json, "copied_samples"));
  EXPECT_GE(Figure(json, "live_bytes"), 1'000'000);
  EXPECT_EQ(Figure(json, "live_bytes_stderr"), 0);
  EXPECT_EQ(Figure(json, "live_bytes_low"), Figure(json, "live_bytes"));
  EXPECT_EQ(Figure(json, "live_bytes_high"), Figure(json, "live_bytes"));
  EXPECT_GE(Figure(json, "peak_bytes"), Figure(json, "live_bytes"));
  EXPECT_EQ(Figure(json, "peak_bytes_low"), Figure(json, "peak_bytes"));
  EXPECT_EQ(Figure(json, "peak_bytes_high"), Figure(json, "peak_bytes"));
  EXPECT_EQ(Figure(json, "lost_records"), 0);
  EXPECT_GT(Figure(json, "engine_peak_rss_kb"), 0);
}

TEST_F(StatsJsonTest, NothingIsWrittenUnlessAskedFor) {
  ASSERT_NO_FATAL_FAILURE(Record());
  EXPECT_TRUE(WriteStatsJson(*recording_, {}).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(StatsJsonTest, AFileThatCannotBeWrittenIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Record());
  for (const char* path : {"/no/such/directory/stats", "/dev/full"}) {
    setenv("HEAPPROFD_STATS_JSON", path, 1);
    const Status status = WriteStatsJson(*recording_, {});
    ASSERT_FALSE(status.ok()) << path;
    EXPECT_NE(status.message().find(path), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("HEAPPROFD_STATS_JSON"), std::string::npos);
  }
}

}  // namespace
}  // namespace heapprofd
