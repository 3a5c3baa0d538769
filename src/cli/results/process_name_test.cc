// Names of programs that have written over their command lines.
#include "cli/results/process_name.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

std::string NameOf(const std::string& argv0, const std::string& executable) {
  TargetProfile profile;
  profile.process.cmdline = {argv0, "argument"};
  profile.process.executable = executable;
  return ProgramName(profile);
}

TEST(ProcessNameTest, ATitleIsNoPath) {
  EXPECT_EQ(NameOf("nginx: master process /usr/sbin/nginx -c /etc/nginx/nginx.conf",
                   "/usr/sbin/nginx"),
            "nginx");
  EXPECT_EQ(NameOf("nginx: worker process", "/usr/sbin/nginx"), "nginx");
  EXPECT_EQ(NameOf("/usr/bin/redis-server *:6379", "/usr/bin/redis-check-rdb"),
            "redis-server");
}

TEST(ProcessNameTest, APathMayHaveBlanks) {
  EXPECT_EQ(NameOf("/opt/two words/my server", "/opt/two words/my server"), "my server");
  EXPECT_EQ(NameOf("/usr/bin/python3", "/usr/bin/python3.11"), "python3");
}

TEST(ProcessNameTest, WithoutACommandLineTheExecutableHasTheName) {
  TargetProfile profile;
  profile.process.executable = "/usr/bin/tool";
  profile.process.pid = 12;
  EXPECT_EQ(ProcessName(profile), "tool (pid 12)");
}

}  // namespace
}  // namespace heapprofd
