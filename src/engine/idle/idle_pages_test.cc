#include "engine/idle/idle_pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/files/proc_files.h"
#include "base/scoped_fd.h"
#include "base/test_child.h"
#include "engine/idle/fake_page_files.h"
#include "sandbox/sandbox.h"

namespace heapprofd {
namespace {

std::vector<IdlePages::Page> LookedAt(const FakePageFiles& files,
                                      const std::vector<uint64_t>& pages) {
  std::vector<IdlePages::Page> found(pages.size());
  EXPECT_EQ(files.Pages().Look(pages, found).count, pages.size());
  return found;
}

TEST(IdlePagesTest, OnlyOwnAnonymousPagesAreAskedAbout) {
  FakePageFiles files;
  files.Map(10, 100);
  files.MapEntry(11, 101 | FakePageFiles::kPresent);  // another process has it, too
  files.MapEntry(12, 102 | FakePageFiles::kPresent | FakePageFiles::kExclusive |
                         FakePageFiles::kFileOrShared);
  files.MapEntry(13, FakePageFiles::kExclusive | 103);  // swapped out
  files.SetIdle(100, true);
  const std::vector<uint64_t> asked = {10, 11, 12, 13, 14, 1'000'000, uint64_t{1} << 60};
  const std::vector<IdlePages::Page> found = LookedAt(files, asked);
  ASSERT_EQ(found.size(), asked.size());
  EXPECT_EQ(found[0].frame, 100u);
  EXPECT_EQ(found[0].is_idle, 1u);
  for (size_t i = 1; i < found.size(); ++i) {
    EXPECT_EQ(found[i].frame, 0u) << i;
    EXPECT_EQ(found[i].is_idle, 0u) << i;
  }
}

TEST(IdlePagesTest, AHugePageIsAsIdleAsItsHead) {
  FakePageFiles files;
  for (uint64_t i = 0; i < 512; ++i)
    files.Map(1024 + i, 512 + i, i == 0 ? FakePageFiles::kHead : FakePageFiles::kTail);
  files.SetIdle(512, true);
  const std::vector<uint64_t> asked = {1025, 1030, 1535, 1536};
  const std::vector<IdlePages::Page> found = LookedAt(files, asked);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found[i].frame, 512u) << i;
    EXPECT_EQ(found[i].is_idle, 1u) << i;
  }
  EXPECT_EQ(found[3].frame, 0u);
}

TEST(IdlePagesTest, ATailWithoutHeadIsNotAskedAbout) {
  FakePageFiles files;
  files.Map(1, 77, FakePageFiles::kTail);
  EXPECT_EQ(LookedAt(files, {1})[0].frame, 0u);
}

TEST(IdlePagesTest, PagesThatCannotBeMarkedAreNotAskedAbout) {
  FakePageFiles files;
  files.Map(1, 77, 0);
  files.Map(2, 512, FakePageFiles::kHead | FakePageFiles::kHugetlb);
  files.Map(3, 513, FakePageFiles::kTail);
  files.Map(9, 515, FakePageFiles::kTail);
  for (const uint64_t page : {1u, 2u, 3u, 9u})
    EXPECT_EQ(LookedAt(files, {page})[0].frame, 0u) << page;
  EXPECT_EQ(LookedAt(files, {2, 3})[1].frame, 0u);
}

TEST(IdlePagesTest, TheEndOfMemoryThatTheKernelDoesNotTellIsNotAskedAbout) {
  FakePageFiles files;
  for (const uint64_t frame : {1023u, 1024u, 1025u}) {
    files.Map(frame, frame);
    files.SetIdle(frame, true);
  }
  files.EndBitmapWith(1025);
  const std::vector<IdlePages::Page> found = LookedAt(files, {1023, 1024, 1025});
  EXPECT_EQ(found[0].frame, 1023u);
  EXPECT_EQ(found[0].is_idle, 1u);
  for (const size_t i : {1u, 2u}) {
    EXPECT_EQ(found[i].frame, 0u) << i;
    EXPECT_EQ(found[i].is_idle, 0u) << i;
  }
}

TEST(IdlePagesTest, AProcessThatIsGoneIsTold) {
  FakePageFiles files;
  files.Map(1, 77);
  files.End();
  std::vector<IdlePages::Page> found(1);
  EXPECT_EQ(files.Pages().Look(std::vector<uint64_t>{1}, found).state,
            IdlePages::State::kGone);
}

TEST(IdlePagesTest, OnlyTheFramesGivenAreMarked) {
  FakePageFiles files;
  std::vector<uint64_t> frames = {200, 64, 127, 65, 64};
  EXPECT_EQ(files.Pages().Mark(frames).state, IdlePages::State::kSeen);
  files.TakeMarks();
  for (uint64_t frame = 0; frame < 300; ++frame)
    EXPECT_EQ(files.IsIdle(frame), std::ranges::count(frames, frame) > 0) << frame;
}

// Files as those of a kernel that tracks idle pages, and what is said of them in a child
// that has given up rights first.
class IdlePagesRightsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
    places_ = {.page_flags = folder_ + "/kpageflags", .bitmap = folder_ + "/bitmap"};
    for (const std::string& path : {places_.bitmap, places_.page_flags})
      ASSERT_TRUE(
          ScopedFd(open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)).valid());
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  // "": nothing is missing.
  std::string Said() const {
    return IdlePages::Open(getpid(), places_).status().message();
  }

  void ExpectSaidAfter(const std::function<bool()>& give_up,
                       const std::string& words) const {
    const std::optional<std::string> said =
        SaidInChild(give_up, [this] { return Said(); });
    if (!said)
      GTEST_SKIP() << "no mounts of its own";
    EXPECT_EQ(*said, words);
  }

  std::string folder_ = "/tmp/idle-XXXXXX";
  IdlePagePlaces places_;
};

TEST_F(IdlePagesRightsTest, AllProcessesHaveTheSameFilesOfTheMachine) {
  Result<IdlePages::Files> first = IdlePages::Open(getpid(), places_);
  if (!first.ok() && Said().find("CAP_SYS_ADMIN") != std::string::npos)
    GTEST_SKIP() << Said();
  ASSERT_TRUE(first.ok()) << first.status().message();
  const Result<IdlePages::Files> second = IdlePages::Open(getpid(), places_);
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(first.value().machine, second.value().machine);
  EXPECT_EQ(first.value().machine.use_count(), 2);  // nobody else keeps them
}

// Tells by `fd` when its first thread has ended, which the second one awaits.
[[noreturn]] void LiveWithoutFirstThread(int fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string stat = "/proc/self/task/" + std::to_string(getpid()) + "/stat";
  std::thread([fd, stat] {
    while (ReadProcFile(stat, 4096).find(") Z") == std::string::npos)
      sched_yield();
    static_cast<void>(!write(fd, "x", 1));
    while (true)
      pause();
  }).detach();
  while (true)
    syscall(SYS_exit, 0);  // this thread alone
}

TEST_F(IdlePagesRightsTest, AProcessWhoseFirstThreadHasEndedIsSeen) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  const ScopedFd from_child(fds[0]);
  ScopedFd to_parent(fds[1]);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0)
    LiveWithoutFirstThread(to_parent.get());
  to_parent.reset();
  char byte = 0;
  EXPECT_EQ(read(from_child.get(), &byte, 1), 1);
  Result<IdlePages::Files> files = IdlePages::Open(child, places_);
  IdlePages::State state = IdlePages::State::kGone;
  if (files.ok()) {
    std::vector<IdlePages::Page> found(1);
    const uint64_t page = reinterpret_cast<uintptr_t>(&state) / 4096;
    state = IdlePages(child, std::move(files).value()).Look({&page, 1}, found).state;
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (files.status().message().find("CAP_SYS_ADMIN") != std::string::npos)
    GTEST_SKIP() << files.status().message();
  EXPECT_EQ(state, IdlePages::State::kSeen) << files.status().message();
}

TEST_F(IdlePagesRightsTest, AKernelThatHidesWhatIsTouched) {
  places_.lru_gen = folder_ + "/lru_gen";
  EXPECT_EQ(IdlePages::Caveat(places_), "");
  std::ofstream(places_.lru_gen) << "0x0000\n";
  EXPECT_EQ(IdlePages::Caveat(places_), "");
  std::ofstream(places_.lru_gen) << "0x0007\n";
  EXPECT_EQ(IdlePages::Caveat(places_),
            "idle memory may be told too large: this kernel's multi-generational LRU "
            "also looks for what is touched, and hides it; write 0 to " +
                places_.lru_gen + " before");
}

TEST_F(IdlePagesRightsTest, AKernelThatDoesNotTrackIdlePages) {
  unlink(places_.bitmap.c_str());
  EXPECT_EQ(Said(), "cannot track idle memory: there is no " + places_.bitmap +
                        "; use a kernel with CONFIG_IDLE_PAGE_TRACKING that shows /sys");
}

TEST_F(IdlePagesRightsTest, AnotherFileThatIsMissing) {
  unlink(places_.page_flags.c_str());
  EXPECT_EQ(Said(), "cannot track idle memory: cannot open " + places_.page_flags +
                        ": No such file or directory");
}

TEST_F(IdlePagesRightsTest, AUserWhoMayNot) {
  constexpr uid_t kNobodyOfAll = 65534;
  ExpectSaidAfter([] { return setgid(kNobodyOfAll) == 0 && setuid(kNobodyOfAll) == 0; },
                  "cannot track idle memory: no right to use " + places_.bitmap +
                      " (Permission denied); record as root, outside of containers");
}

TEST_F(IdlePagesRightsTest, FilesThatAreReadOnlyAsInContainers) {
  const std::string folder = folder_;
  ExpectSaidAfter(
      [&folder] {
        const char* const path = folder.c_str();
        return mount(path, path, nullptr, MS_BIND, nullptr) == 0 &&
               mount(nullptr, path, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) ==
                   0;
      },
      "cannot track idle memory: no right to use " + places_.bitmap +
          " (Read-only file system); record as root, outside of containers");
}

// A root without rights still owns root's files.
TEST_F(IdlePagesRightsTest, ARootWhoIsNotToldWherePagesAre) {
  ExpectSaidAfter([] { return DropCapabilities(0).ok(); },
                  "cannot track idle memory: the kernel does not tell where pages are "
                  "without CAP_SYS_ADMIN; record as root, outside of containers");
}

}  // namespace
}  // namespace heapprofd
