#include "engine/target_rules.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

ProcessDescription Process(const std::string& argv0, const std::string& executable = "") {
  ProcessDescription process;
  process.pid = 7;
  process.cmdline = {argv0, "argument"};
  process.executable = executable;
  return process;
}

bool Matches(const std::string& name, const ProcessDescription& process) {
  TargetRules rules;
  rules.names = {"some-other", name};
  return IsNamedBy(rules, process);
}

TEST(TargetRulesTest, NamesAreComparedWithoutFolderAndVersion) {
  EXPECT_TRUE(Matches("server", Process("/usr/bin/server")));
  EXPECT_TRUE(Matches("/elsewhere/server", Process("server")));
  EXPECT_TRUE(Matches("server@2.0", Process("/usr/bin/server@1.2.3")));
  EXPECT_TRUE(Matches("two words", Process("two words")));
  EXPECT_FALSE(Matches("serve", Process("server")));
  EXPECT_FALSE(Matches("server", Process("servers")));
  EXPECT_FALSE(Matches("argument", Process("server")));
}

TEST(TargetRulesTest, TheExecutableCountsWhenArgv0WasRewritten) {
  EXPECT_TRUE(
      Matches("redis-server", Process("redis-server *:6379", "/usr/bin/redis-server")));
  EXPECT_FALSE(Matches("redis-server", Process("redis-server *:6379")));
}

TEST(TargetRulesTest, PatternsMatchTheFileNameOrWithASlashTheWholePath) {
  EXPECT_TRUE(Matches("serv*", Process("/usr/bin/server")));
  EXPECT_TRUE(Matches("/usr/*/server", Process("/usr/bin/server")));
  EXPECT_TRUE(Matches("*", Process("anything")));
  EXPECT_FALSE(Matches("/opt/*", Process("/usr/bin/server")));
  EXPECT_FALSE(Matches("usr*", Process("/usr/bin/server")));
}

TEST(TargetRulesTest, PidsAndAll) {
  TargetRules rules;
  EXPECT_FALSE(IsNamedBy(rules, Process("server")));
  rules.pids = {6, 7};
  EXPECT_TRUE(IsNamedBy(rules, Process("server")));
  rules.pids = {6};
  EXPECT_FALSE(IsNamedBy(rules, Process("server")));
  rules.all = true;
  EXPECT_TRUE(IsNamedBy(rules, Process("server")));
}

TEST(TargetRulesTest, AProcessWithoutACommandLineMatchesNoName) {
  ProcessDescription process;
  EXPECT_FALSE(Matches("*", process));
}

}  // namespace
}  // namespace heapprofd
