// What comes of it between programs and commands is in front_desk_test.cc.
#include "service/engines.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr uid_t kAnna = 61011;
constexpr uid_t kBert = 61012;

// Until the other side is gone.
int WaitForTheEnd(const Link& link) {
  pollfd end{.fd = link.fd(), .events = POLLIN, .revents = 0};
  poll(&end, 1, -1);
  return 0;
}

class EnginesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0)
      GTEST_SKIP() << "only root's service has engines";
  }

  void TearDown() override {
    for (const std::unique_ptr<EngineProcess>& engine : engines_.all())
      engine->Kill();
    for (const uint64_t end_ns = MonotonicNs() + 60'000'000'000;
         !engines_.is_empty() && MonotonicNs() < end_ns;)
      engines_.Reap();
    EXPECT_TRUE(engines_.is_empty());
  }

  // One that connects as `user`; it is this very process.
  static Visitor VisitorOf(uid_t user, gid_t group) {
    Visitor visitor;
    visitor.pid = getpid();
    visitor.rights = {.user = user, .group = group};
    return visitor;
  }

  // As the front desk knows it, with a recording.
  EngineProcess* Start(uid_t user, gid_t group) {
    const Result<EngineProcess*> engine = engines_.Of(VisitorOf(user, group));
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    if (!engine.ok())
      return nullptr;
    engine.value()->recordings = 1;
    return engine.value();
  }

  Engines engines_{WaitForTheEnd};
};

TEST_F(EnginesTest, ThereIsOneForEachSetOfRights) {
  EngineProcess* const first = Start(kAnna, kAnna);
  EXPECT_EQ(Start(kAnna, kAnna), first);
  EXPECT_NE(Start(kAnna, kAnna + 1), first);
  EXPECT_EQ(engines_.started(), 2u);
  EXPECT_EQ(engines_.CountRecordings(), 2u);
  first->is_leaving = true;
  EXPECT_NE(Start(kAnna, kAnna), first);
}

TEST_F(EnginesTest, AProgramIsOfferedToRootsAndThenToThoseOfItsUserAndGroup) {
  EngineProcess* const annas = Start(kAnna, kAnna);
  Start(kBert, kBert);
  Start(kAnna, kAnna + 1);
  EngineProcess* const roots = Start(0, 0);
  ASSERT_NE(roots, nullptr);
  EXPECT_EQ(engines_.all()[0].get(), roots);
  const Visitor program = VisitorOf(kAnna, kAnna);
  using Asked = std::vector<EngineProcess*>;
  EXPECT_EQ(engines_.ThatMayWant(program, nullptr), (Asked{roots, annas}));
  EXPECT_EQ(engines_.ThatMayWant(program, roots), Asked{annas});
  EXPECT_EQ(engines_.ThatMayWant(program, annas), Asked{});
  roots->recordings = 0;  // wants nothing
  EXPECT_EQ(engines_.ThatMayWant(program, nullptr), Asked{annas});
}

TEST_F(EnginesTest, AUserHasAFewOfThem) {
  for (gid_t group = 0; group < 4; ++group)
    Start(kAnna, kAnna + group);
  EXPECT_EQ(engines_.Of(VisitorOf(kAnna, kAnna + 4)).status().message(),
            "cannot serve the command: 4 engines of this user run already, each for "
            "other groups; end recordings that were started with other groups");
}

}  // namespace
}  // namespace heapprofd
