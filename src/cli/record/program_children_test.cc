// Without children; real ones are in tests/e2e/process_life_test.py.
#include "cli/record/program_children.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

namespace heapprofd {
namespace {

TEST(ProgramChildrenTest, WhereNobodyReportsOrMayThereAreNone) {
  RecordingConfig config;
  config.sessions.emplace_back();
  Result<std::unique_ptr<Session>> session = Session::Create(config.sessions[0]);
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<std::unique_ptr<Session>> sessions;
  sessions.push_back(std::move(session).value());
  const TraceRecording recording(config, std::move(sessions), TraceFile::InMemory());
  ProgramChildren children(&recording);
  EXPECT_FALSE(children.AreThere());
  EXPECT_EQ(children.Count(getpid()), 0u);
}

}  // namespace
}  // namespace heapprofd
