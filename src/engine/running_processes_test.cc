// What is another user's, as an ordinary user sees it.
#include "engine/running_processes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "base/files/late_user.h"

namespace heapprofd {
namespace {

constexpr uid_t kAlice = 61002;
constexpr pid_t kUnusedId = INT32_MAX - 1;  // more than the kernel ever gives

// Whether it holds for one who is not root.
bool HoldsForAlice(const std::function<bool()>& holds) {
  const pid_t child = fork();
  if (child == 0) {
    const bool is_alice = geteuid() != 0 || setresuid(kAlice, kAlice, kAlice) == 0;
    _exit(is_alice && holds() ? 0 : 1);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

TEST(IsOthersTest, AProcessThatHasEndedIsNot) {
  EXPECT_TRUE(HoldsForAlice([] { return !IsOthers(kUnusedId); }));
}

TEST(IsOthersTest, ItsOwnIsNot) {
  EXPECT_TRUE(HoldsForAlice([] { return !IsOthers(getpid()); }));
}

TEST(IsOthersTest, OneOfRootsIs) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root has one for sure";
  const pid_t root = getpid();
  EXPECT_TRUE(HoldsForAlice([root] { return IsOthers(root); }));
  EXPECT_FALSE(IsOthers(root));
}

TEST(HasRightsOfTest, UserZeroStandsForNobodyElse) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root needs to ask";
  EXPECT_TRUE(HasRightsOf(getpid(), 0, getegid()));
  EXPECT_FALSE(HasRightsOf(getpid(), 0, getegid() + 1));
  EXPECT_FALSE(HasRightsOf(getpid(), kAlice, getegid()));
  EXPECT_FALSE(HasRightsOf(kUnusedId, 0, 0));
  const ProcessOfUser process(kAlice);
  ASSERT_TRUE(process.is_ready());
  EXPECT_FALSE(HasRightsOf(process.pid(), 0, 0));
}

TEST(FindClientsTest, WhatCouldNotBeReadIsNotTakenForNone) {
  EXPECT_TRUE(FindClients(getpid(), "/no_such_page").has_value());
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can make a process of another user";
  const ProcessOfUser process(kAlice);
  ASSERT_TRUE(process.is_ready());
  const LateUser alice({.id = kAlice});
  EXPECT_FALSE(FindClients(process.pid(), "/no_such_page").has_value());
}

}  // namespace
}  // namespace heapprofd
