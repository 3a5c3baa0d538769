// The gate's rules, with a socket in place of fanotify and with watchers of all kinds;
// the real ones are in tests/e2e/exec_gate_test.py.
#include "attach/gate/gate.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/fanotify.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <optional>

#include "attach/gate/gate_link.h"
#include "base/clock.h"
#include "base/files/passed_fds.h"

namespace heapprofd {
namespace {

constexpr char kProgram[] = "/proc/self/exe";

struct Pair {
  Pair() {
    std::array<int, 2> fds{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()), 0);
    ours = ScopedFd(fds[0]);
    theirs = ScopedFd(fds[1]);
  }

  ScopedFd ours;
  ScopedFd theirs;
};

// As what comes first.
std::string Sized(const std::string& bytes) {
  const auto size = static_cast<GateSize>(bytes.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + bytes;
}

bool Say(const GateEnds& ends, const std::string& bytes) {
  return write(ends.pipe.get(), bytes.data(), bytes.size()) ==
         static_cast<ssize_t>(bytes.size());
}

ExecNames AnyName() {
  ExecNames names;
  names.AddName("*");
  return names;
}

class GateTest : public testing::Test {
 protected:
  GateTest()
      : gate_(std::move(control_.theirs),
              std::move(group_.theirs),
              [this](const char* path) {
                marks_ = path != nullptr ? marks_ + 1 : 0;
                return true;
              }) {}

  // Says nothing yet.
  GateEnds AddSilent(bool are_mounts_left_out = false, bool has_mounts = true) {
    GateEnds watchers;
    GateEnds gates;
    EXPECT_TRUE(OpenGateEnds(&watchers, &gates));
    Pair mounts;
    const ScopedFd place(open("/", O_PATH | O_CLOEXEC));
    EXPECT_TRUE(SendWithFds(control_.ours.get(), kWatchRequest,
                            {gates.socket.get(), gates.pipe.get(), mounts.theirs.get()}));
    if (has_mounts) {
      EXPECT_TRUE(SendWithFds(mounts.ours.get(), "m", {place.get()}));
    }
    if (are_mounts_left_out) {
      EXPECT_TRUE(SendWithFds(mounts.ours.get(), kMountsLeftOut, std::vector<int>()));
    }
    mounts.ours.reset();
    Turn();
    GateReply reply{};
    EXPECT_EQ(recv(control_.ours.get(), &reply, sizeof(reply), MSG_DONTWAIT),
              static_cast<ssize_t>(sizeof(reply)));
    EXPECT_EQ(reply.error, 0);
    return watchers;
  }

  // What it is told that is refused.
  std::string Refusal(GateEnds ends, const ExecNames& names) {
    EXPECT_TRUE(Say(ends, Sized(names.Encode())));
    GateLink link(std::move(ends));
    Turn();
    const std::optional<GateLink::News> news = link.Receive();
    return news && news->message.news == GateNews::kRefused ? news->text : "";
  }

  // `note`: what it says when it is ready.
  GateLink Begin(GateEnds ends, const ExecNames& names, std::string* note) {
    EXPECT_TRUE(Say(ends, Sized(names.Encode())));
    GateLink link(std::move(ends));
    Turn();
    const std::optional<GateLink::News> ready = link.Receive();
    EXPECT_TRUE(ready && ready->message.news == GateNews::kReady);
    *note = ready ? ready->text : "";
    return link;
  }

  GateLink Add(const ExecNames& names = AnyName()) {
    std::string note;
    GateLink link = Begin(AddSilent(), names, &note);
    EXPECT_EQ(note, "");
    return link;
  }

  void Turn() {
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(gate_.Turn(0));
  }

  // A thread of `tid` executes our own program; gives the event's descriptor.
  int Execute(pid_t tid) {
    fanotify_event_metadata event{};
    event.event_len = sizeof(event);
    event.vers = FANOTIFY_METADATA_VERSION;
    event.metadata_len = sizeof(event);
    event.mask = FAN_OPEN_EXEC_PERM;
    event.fd = open(kProgram, O_RDONLY | O_CLOEXEC);
    event.pid = tid;
    EXPECT_EQ(send(group_.ours.get(), &event, sizeof(event), 0),
              static_cast<ssize_t>(sizeof(event)));
    Turn();
    return event.fd;
  }

  // Descriptor of the next event that was permitted; -1: none.
  int Allowed() {
    fanotify_response response{};
    if (recv(group_.ours.get(), &response, sizeof(response), MSG_DONTWAIT) !=
        static_cast<ssize_t>(sizeof(response)))
      return -1;
    EXPECT_EQ(response.response, static_cast<uint32_t>(FAN_ALLOW));
    return response.fd;
  }

  Pair control_;
  Pair group_;
  int marks_ = 0;
  Gate gate_;
};

TEST_F(GateTest, MountsThatWereLeftOutAreTold) {
  std::string note;
  Begin(AddSilent(/*are_mounts_left_out=*/true), AnyName(), &note);
  EXPECT_TRUE(note.starts_with("cannot watch all file systems")) << note;
}

TEST_F(GateTest, WhatNobodyWaitsForHasItsLeaveAtOnce) {
  ExecNames names;
  names.AddName("another");
  GateLink link = Add(names);
  const int file = Execute(getpid());
  EXPECT_EQ(Allowed(), file);
  EXPECT_FALSE(link.Receive());
}

TEST_F(GateTest, AProgramWaitsForTheOneWhoWatches) {
  GateLink link = Add();
  const int file = Execute(getpid());
  EXPECT_EQ(Allowed(), -1);
  const std::optional<GateLink::News> news = link.Receive();
  ASSERT_TRUE(news);
  EXPECT_EQ(news->message.news, GateNews::kHeld);
  EXPECT_EQ(news->message.tid, getpid());
  EXPECT_EQ(news->text, std::filesystem::read_symlink(kProgram).string());
  const int loader = Execute(getpid());  // of the same exec
  EXPECT_EQ(Allowed(), loader);
  link.Done(news->message.number);
  Turn();
  EXPECT_EQ(Allowed(), file);
  Execute(getpid());
  EXPECT_TRUE(link.Receive());
}

TEST_F(GateTest, AllowingIsNotBeingDone) {
  GateLink link = Add();
  const int file = Execute(getpid());
  const std::optional<GateLink::News> news = link.Receive();
  ASSERT_TRUE(news);
  link.Allow(news->message.number, 0);
  Turn();
  EXPECT_EQ(Allowed(), file);
  const int loader = Execute(getpid());
  EXPECT_EQ(Allowed(), loader);
  EXPECT_FALSE(link.Receive());
}

TEST_F(GateTest, AWatcherThatNeverAnswersHoldsAProgramForATimeOnly) {
  const GateLink link = Add();
  const int file = Execute(getpid());
  const uint64_t held_ns = MonotonicNs();
  int allowed = -1;
  while ((allowed = Allowed()) < 0)
    gate_.Turn(1000);
  EXPECT_EQ(allowed, file);
  EXPECT_GE(MonotonicNs(), held_ns + kMaxHoldNs / 2);
}

TEST_F(GateTest, TheEndOfAWatcherIsTheEndOfTheWaiting) {
  int file = -1;
  {
    const GateLink link = Add();
    EXPECT_EQ(marks_, 1);
    file = Execute(getpid());
  }
  Turn();
  EXPECT_EQ(Allowed(), file);
  EXPECT_EQ(marks_, 0);  // nobody watches
}

TEST_F(GateTest, OneOfTwoWatchersGetsAProgramAndTheOtherIsTold) {
  GateLink first = Add();
  GateLink second = Add();
  Execute(getpid());
  const std::optional<GateLink::News> got = first.Receive();
  const std::optional<GateLink::News> told = second.Receive();
  ASSERT_TRUE(got && told);
  EXPECT_EQ(got->message.news, GateNews::kHeld);
  EXPECT_EQ(told->message.news, GateNews::kTaken);
  EXPECT_EQ(told->message.tid, getpid());
}

TEST_F(GateTest, WhoeverDoesNotReadIsToldHowManyHeHasMissed) {
  GateLink link = Add();
  constexpr int kMany = 600;
  int told = 0;
  uint64_t missed = 0;
  for (int i = 0; i < kMany; ++i) {
    const pid_t child = fork();  // a thread of its own each, which need not live on
    if (child == 0)
      pause();
    Execute(child);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    while (Allowed() >= 0) {
    }
  }
  for (int i = 0; i < kMany; ++i) {
    Turn();
    while (const std::optional<GateLink::News> news = link.Receive()) {
      told += news->message.news == GateNews::kHeld ? 1 : 0;
      missed += news->message.news == GateNews::kMissed ? news->message.number : 0;
    }
  }
  EXPECT_EQ(static_cast<uint64_t>(told) + missed, static_cast<uint64_t>(kMany));
  EXPECT_LE(told, static_cast<int>(HeldExecs::kMax));
}

// What nobody honest says ends the watching, and lets go who waits.
TEST_F(GateTest, GarbageEndsTheConnectionOfItsSender) {
  for (const std::string& garbage : {Sized(""), Sized("x"), Sized(std::string(1, '\0')),
                                     Sized(std::string("1zname\0", 7)), Sized("1nname"),
                                     std::string("\377\377\377\377"),
                                     Sized(std::string(ExecNames::kMaxBytes + 1, '1'))}) {
    const GateEnds ends = AddSilent();
    ASSERT_TRUE(Say(ends, garbage));
    Turn();
    EXPECT_FALSE(gate_.is_watching()) << garbage.substr(0, 10);
  }
  const GateEnds ends = AddSilent();
  ASSERT_TRUE(Say(ends, Sized(AnyName().Encode())));
  Turn();
  const int file = Execute(getpid());
  GateLink link = Add();
  ASSERT_TRUE(Say(ends, std::string(sizeof(GateAnswer) * 20, 'x')));
  for (int i = 0; i < 3; ++i)
    Turn();
  EXPECT_EQ(Allowed(), file);
  EXPECT_TRUE(gate_.is_watching());  // the other one
}

TEST_F(GateTest, WhatComesInPiecesIsUnderstood) {
  const GateEnds ends = AddSilent();
  for (const char byte : Sized(AnyName().Encode())) {
    ASSERT_TRUE(Say(ends, std::string(1, byte)));
    Turn();
  }
  Execute(getpid());
  EXPECT_EQ(Allowed(), -1);
}

TEST_F(GateTest, AFloodOfAnswersEndsTheConnectionOfItsSender) {
  GateLink link = Add();
  for (int i = 0; i < 1000; ++i) {
    link.Allow(12345, 0);
    Turn();
  }
  EXPECT_FALSE(gate_.is_watching());
}

TEST_F(GateTest, AnswersForTheProgramsOfOthersDoNothing) {
  GateLink first = Add();
  ExecNames names;
  names.AddName("another");
  GateLink second = Add(names);
  Execute(getpid());
  const std::optional<GateLink::News> news = first.Receive();
  ASSERT_TRUE(news);
  second.Done(news->message.number);
  Turn();
  EXPECT_EQ(Allowed(), -1);
}

TEST_F(GateTest, TheNumberOfWatchersIsLimited) {
  std::vector<GateEnds> watchers;
  for (size_t i = 0; i <= Gate::kMaxWatchers; ++i)
    watchers.push_back(AddSilent());
  GateLink last(std::move(watchers.back()));
  const std::optional<GateLink::News> news = last.Receive();
  ASSERT_TRUE(news);
  EXPECT_EQ(news->message.news, GateNews::kRefused);
  EXPECT_EQ(news->text,
            "cannot watch for new processes: 256 recordings by name run already; stop "
            "one");
}

TEST_F(GateTest, WithoutAFileSystemNothingIsWatched) {
  EXPECT_EQ(Refusal(AddSilent(false, /*has_mounts=*/false), AnyName()),
            "cannot watch any file system for new processes: none of those that were "
            "found is local; attach to programs with -p once they run");
}

TEST_F(GateTest, ItEndsWithItsOwner) {
  control_.ours.reset();
  EXPECT_FALSE(gate_.Turn(0));
}

}  // namespace
}  // namespace heapprofd
