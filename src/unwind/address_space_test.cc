// The mappings of this very process: what it loads is found, what it unloads is not.
#include "unwind/address_space.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files/file_opener_process.h"
#include "base/files/foreign_file.h"
#include "base/files/late_user.h"
#include "base/test_child.h"

namespace heapprofd {
namespace {

// A small library of glibc that nothing links.
constexpr char kLibrary[] = "libBrokenLocale.so.1";

class AddressSpaceTest : public testing::Test {
 protected:
  // On a busy machine a file may not open in time at first.
  RefreshOutcome Refresh() {
    RefreshOutcome sum;
    for (int i = 0; i < 100; ++i) {
      const Result<RefreshOutcome> outcome = space_.Refresh();
      EXPECT_TRUE(outcome.ok());
      if (!outcome.ok())
        break;
      sum.executable_added |= outcome.value().executable_added;
      sum.executable_removed |= outcome.value().executable_removed;
      if (!outcome.value().is_incomplete)
        break;
    }
    return sum;
  }

  std::vector<Mapping> mappings_;
  ModuleCache modules_{kOwnPatienceNs};
  AddressSpace space_{getpid(), &modules_, &mappings_, /*files_ns=*/UINT64_MAX};
};

uint64_t CodeOf(void* library) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
    return 0;
  void* base = reinterpret_cast<void*>(map->l_addr);
  const auto* header = static_cast<const ElfW(Ehdr)*>(base);
  const auto* segments =
      reinterpret_cast<const ElfW(Phdr)*>(map->l_addr + header->e_phoff);
  for (int i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type == PT_LOAD && (segments[i].p_flags & PF_X) != 0)
      return map->l_addr + segments[i].p_vaddr + 1;
  }
  return 0;
}

TEST_F(AddressSpaceTest, BeforeTheFirstRefreshNothingIsKnown) {
  EXPECT_FALSE(space_.Find(reinterpret_cast<uint64_t>(&getenv)).has_value());
}

TEST_F(AddressSpaceTest, OwnCodeIsFoundAtItsElfAddress) {
  EXPECT_TRUE(Refresh().executable_added);
  for (void* code :
       {reinterpret_cast<void*>(&CodeOf), dlsym(RTLD_DEFAULT, "gnu_get_libc_version")}) {
    Dl_info loaded{};
    ASSERT_NE(dladdr(code, &loaded), 0);
    const auto pc = reinterpret_cast<uint64_t>(code);
    const std::optional<CodeLocation> location = space_.Find(pc);
    ASSERT_TRUE(location.has_value());
    ASSERT_NE(location->module, nullptr);
    EXPECT_EQ(location->rel_pc, pc - reinterpret_cast<uint64_t>(loaded.dli_fbase));
    EXPECT_EQ(location->module, space_.known().ModuleOf(location->mapping));
    const Mapping& mapping = mappings_[location->mapping];
    EXPECT_LE(mapping.start, pc);
    EXPECT_GT(mapping.end, pc);
    EXPECT_TRUE(space_.known().OpenFileOf(mapping).valid());
  }
}

TEST_F(AddressSpaceTest, LibcHasABuildId) {
  Refresh();
  const auto location = space_.Find(
      reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")));
  ASSERT_TRUE(location.has_value());
  EXPECT_EQ(mappings_[location->mapping].build_id.size(), 20u);
  EXPECT_NE(mappings_[location->mapping].path.find("libc"), std::string::npos);
}

TEST_F(AddressSpaceTest, DataIsNotCodeAndStacksAreWritableRegions) {
  Refresh();
  const int local = 0;
  const auto heap = std::make_unique<int>(1);
  const auto stack = reinterpret_cast<uint64_t>(&local);
  EXPECT_FALSE(space_.Find(stack).has_value());
  EXPECT_FALSE(space_.Find(reinterpret_cast<uint64_t>(heap.get())).has_value());
  for (const uint64_t pc : {uint64_t{0}, uint64_t{4096}, UINT64_MAX})
    EXPECT_FALSE(space_.Find(pc).has_value());
  bool is_covered = false;
  uint64_t last = 0;
  for (const AddressRange& region : space_.writable_regions()) {
    EXPECT_GE(region.start, last);
    last = region.end;
    is_covered |= region.start <= stack && stack < region.end;
  }
  EXPECT_TRUE(is_covered);
}

TEST_F(AddressSpaceTest, TheVdsoIsAModuleInMemory) {
  const uint64_t base = getauxval(AT_SYSINFO_EHDR);
  if (base == 0)
    GTEST_SKIP() << "this kernel gives no vdso";
  Refresh();
  const auto location = space_.Find(base + 0x800);
  ASSERT_TRUE(location.has_value());
  ASSERT_NE(location->module, nullptr);
  EXPECT_EQ(location->rel_pc, 0x800u);
  EXPECT_FALSE(location->module->OpenFile().valid());
}

TEST_F(AddressSpaceTest, AnUnchangedProcessChangesNothing) {
  Refresh();
  const size_t count = mappings_.size();
  const RefreshOutcome outcome = Refresh();
  EXPECT_FALSE(outcome.executable_added);
  EXPECT_FALSE(outcome.executable_removed);
  EXPECT_EQ(mappings_.size(), count);
}

TEST_F(AddressSpaceTest, ALoadedLibraryIsFoundUntilItIsUnloaded) {
  Refresh();
  void* library = dlopen(kLibrary, RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  const uint64_t pc = CodeOf(library);
  EXPECT_FALSE(space_.Find(pc).has_value());
  const RefreshOutcome loaded = Refresh();
  EXPECT_TRUE(loaded.executable_added);
  EXPECT_FALSE(loaded.executable_removed);
  const auto location = space_.Find(pc);
  ASSERT_TRUE(location.has_value());
  EXPECT_NE(mappings_[location->mapping].path.find("libBrokenLocale"), std::string::npos);
  dlclose(library);
  const RefreshOutcome unloaded = Refresh();
  EXPECT_TRUE(unloaded.executable_removed);
  EXPECT_FALSE(unloaded.executable_added);
  EXPECT_FALSE(space_.Find(pc).has_value());
  EXPECT_EQ(space_.known().ModuleOf(location->mapping), location->module);
}

TEST_F(AddressSpaceTest, CodeThatReplacesOtherCodeIsAnotherMapping) {
  const auto map = [](void* at) {
    return mmap(at, 4096, PROT_READ | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED : 0), -1, 0);
  };
  void* code = map(nullptr);
  ASSERT_NE(code, MAP_FAILED);
  Refresh();
  const auto jit = space_.Find(reinterpret_cast<uint64_t>(code));
  ASSERT_TRUE(jit.has_value());
  EXPECT_EQ(jit->module, nullptr);
  EXPECT_FALSE(space_.known().OpenFileOf(mappings_[jit->mapping]).valid());
  const int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(mmap(code, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, exe, 0),
            code);
  close(exe);
  const RefreshOutcome outcome = Refresh();
  EXPECT_TRUE(outcome.executable_added);
  EXPECT_TRUE(outcome.executable_removed);
  const auto file = space_.Find(reinterpret_cast<uint64_t>(code));
  ASSERT_TRUE(file.has_value());
  EXPECT_NE(file->mapping, jit->mapping);
  EXPECT_NE(file->module, nullptr);
  munmap(code, 4096);
}

TEST_F(AddressSpaceTest, TwoProcessesShareTheModuleOfAFile) {
  Refresh();
  std::vector<Mapping> others;
  AddressSpace other(getpid(), &modules_, &others);
  ASSERT_TRUE(other.Refresh().ok());
  const auto pc = reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
  EXPECT_EQ(other.Find(pc)->module, space_.Find(pc)->module);
}

// So many mappings that reading them is dear; they are legal.
class ManyMappings {
 public:
  ManyMappings() {
    constexpr size_t kPage = 4096;
    bytes_ = kCount * kPage;
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (size_t i = 0; memory_ != MAP_FAILED && is_complete_ && i < kCount; i += 2)
      is_complete_ = mprotect(memory_ + i * kPage, kPage, PROT_READ | PROT_WRITE) == 0;
  }

  ~ManyMappings() { munmap(memory_, bytes_); }

  static constexpr size_t kCount = 60'000;

  bool is_complete() const { return memory_ != MAP_FAILED && is_complete_; }

 private:
  std::byte* memory_;
  size_t bytes_;
  bool is_complete_ = true;
};

TEST_F(AddressSpaceTest, AddressesThatNobodyKnowsDoNotHaveManyMappingsReadForEach) {
  const ManyMappings many;
  if (!many.is_complete())
    GTEST_SKIP() << "this kernel allows fewer mappings";
  Refresh();
  const uint64_t before = space_.refreshes();
  for (uint64_t pc = 4096; pc < 4096 + 512; ++pc)
    EXPECT_FALSE(space_.FindOrRefresh(pc).has_value());
  EXPECT_LE(space_.refreshes() - before, 2u);
  EXPECT_GE(space_.postponed(), 510u);
}

TEST(SlowFilesTest, CodeThatIsAskedForIsKnownHoweverLongOtherFilesTake) {
  std::vector<Mapping> mappings;
  ModuleCache modules(kOwnPatienceNs);
  AddressSpace space(getpid(), &modules, &mappings, /*files_ns=*/0);
  ASSERT_TRUE(space.Refresh().ok());
  EXPECT_TRUE(space.has_unopened_files());
  const auto own = reinterpret_cast<uint64_t>(&CodeOf);
  EXPECT_FALSE(space.Find(own));
  const uint64_t replacements = space.replacements();
  EXPECT_TRUE(space.FindOrRefresh(own));
  // Whoever took it for no code meanwhile has to look again.
  EXPECT_GT(space.replacements(), replacements);
}

TEST(SlowFilesTest, AFileThatIsOpenTakesNoTimeWhereItIsMappedAgain) {
  void* in_libc = dlsym(RTLD_DEFAULT, "abort");
  Dl_info libc{};
  ASSERT_NE(dladdr(in_libc, &libc), 0);
  const ScopedFd file(open(libc.dli_fname, O_RDONLY | O_CLOEXEC));
  constexpr size_t kSize = 4096;
  void* again =
      mmap(nullptr, kSize, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), /*offset=*/0);
  ASSERT_NE(again, MAP_FAILED);
  const auto [first, second] = std::minmax(
      {reinterpret_cast<uint64_t>(in_libc), reinterpret_cast<uint64_t>(again)});
  std::vector<Mapping> mappings;
  ModuleCache modules(kOwnPatienceNs);
  AddressSpace space(getpid(), &modules, &mappings, /*files_ns=*/0);
  ASSERT_TRUE(space.Refresh(/*wanted=*/first).ok());
  munmap(again, kSize);
  EXPECT_TRUE(space.Find(second).has_value());
}

TEST(SlowFilesTest, FilesThereWasNoTimeForComeWithTheNextRefresh) {
  std::vector<Mapping> mappings;
  ModuleCache modules(kOwnPatienceNs);
  AddressSpace space(getpid(), &modules, &mappings, /*files_ns=*/1);
  const auto in_libc = reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "abort"));
  uint64_t refreshes = 0;
  do {
    ASSERT_TRUE(space.Refresh().ok());
    ++refreshes;
  } while (space.has_unopened_files());
  EXPECT_GT(refreshes, 1u);
  EXPECT_TRUE(space.Find(in_libc));
}

TEST_F(AddressSpaceTest, WhatLiesBehindManyMappingsIsKnown) {
  const ManyMappings many;
  if (!many.is_complete())
    GTEST_SKIP() << "this kernel allows fewer mappings";
  Refresh();
  EXPECT_GE(space_.writable_regions().size(), ManyMappings::kCount / 2);
  EXPECT_TRUE(space_.Find(reinterpret_cast<uint64_t>(&CodeOf)).has_value());
  EXPECT_TRUE(
      space_.Find(reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")))
          .has_value());
}

// A process may map as many files as it likes, and has them closed by ending.
TEST(ManyFilesTest, TheyDoNotTakeAllDescriptorsAndAreFoundAgain) {
  constexpr size_t kFiles = 300;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 256, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  ModuleCache modules;
  std::string folder = testing::TempDir() + "files-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::vector<void*> mapped;
  for (size_t i = 0; i < kFiles; ++i) {
    const std::string path = folder + "/" + std::to_string(i);
    std::filesystem::copy_file("/proc/self/exe", path);
    const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    mapped.push_back(
        mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd.get(), 0));
  }
  std::vector<Mapping> mappings;
  AddressSpace space(getpid(), &modules, &mappings);
  for (bool is_incomplete = true; is_incomplete;) {
    const Result<RefreshOutcome> outcome = space.Refresh();
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    is_incomplete = outcome.value().is_incomplete;
  }
  size_t found = 0;
  const uint64_t deadline_ns = MonotonicNs() + 60'000'000'000;
  for (const Mapping& mapping : mappings) {
    // Who opens them has a limit of time, which a busy machine can reach.
    while (mapping.path.starts_with(folder) && MonotonicNs() < deadline_ns) {
      if (!space.known().OpenFileOf(mapping).valid())
        continue;
      ++found;
      break;
    }
  }
  EXPECT_EQ(found, kFiles);
  for (void* memory : mapped)
    munmap(memory, 4096);
  setrlimit(RLIMIT_NOFILE, &before);
  std::filesystem::remove_all(folder);
}

// Call sites in it were taken for no code: whoever keeps such has to forget them.
TEST(LateFileTest, CodeWhoseFileOpensLateReplacesWhatWasTakenForNoCode) {
  if (geteuid() != 0)
    GTEST_SKIP() << "an ordinary user opens files himself";
  const FileOpenerProcess opener;
  std::string folder = testing::TempDir() + "late-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  ModuleCache modules;
  std::vector<Mapping> mappings;
  AddressSpace space(getpid(), &modules, &mappings);
  const uint64_t deadline_ns = MonotonicNs() + 60'000'000'000;
  const auto is_complete = [&space] {
    const Result<RefreshOutcome> outcome = space.Refresh();
    EXPECT_TRUE(outcome.ok());
    return outcome.ok() && !outcome.value().is_incomplete;
  };
  while (!is_complete() && MonotonicNs() < deadline_ns) {
  }
  std::filesystem::copy_file("/proc/self/exe", folder + "/code");
  const ScopedFd fd(open((folder + "/code").c_str(), O_RDONLY | O_CLOEXEC));
  void* const code = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd.get(), 0);
  const uint64_t pc = reinterpret_cast<uint64_t>(code) + 1;
  ASSERT_TRUE(opener.Stop());
  const uint64_t replacements = space.replacements();
  EXPECT_FALSE(is_complete());
  EXPECT_FALSE(space.Find(pc).has_value());
  EXPECT_EQ(space.replacements(), replacements);
  opener.Continue();
  while (!is_complete() && MonotonicNs() < deadline_ns) {
  }
  EXPECT_TRUE(space.Find(pc).has_value());
  EXPECT_EQ(space.replacements(), replacements + 1);
  EXPECT_TRUE(is_complete());  // and once only
  EXPECT_EQ(space.replacements(), replacements + 1);
  munmap(code, 4096);
  std::filesystem::remove_all(folder);
}

// As somebody who may open files by their names only.
TEST(GoneFileTest, CodeWhoseFileWasRemovedIsCounted) {
  constexpr uid_t kNobody = 65534;
  std::string folder = testing::TempDir() + "gone-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::filesystem::copy_file("/proc/self/exe", folder + "/code");
  const ScopedFd gone(open((folder + "/code").c_str(), O_RDONLY | O_CLOEXEC));
  std::filesystem::remove_all(folder);
  const ScopedFd made(memfd_create("made", MFD_CLOEXEC));
  const std::optional<std::string> counted = SaidInChild(
      [] { return setgid(kNobody) == 0 && setuid(kNobody) == 0; },
      [&] {
        ModuleCache modules;
        std::vector<Mapping> mappings;
        AddressSpace space(getpid(), &modules, &mappings);
        static_cast<void>(space.Refresh());
        const uint64_t before = space.gone_files();
        for (const ScopedFd* fd : {&gone, &made})
          mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd->get(), 0);
        static_cast<void>(space.Refresh());
        return std::to_string(space.gone_files() - before);
      });
  if (!counted)
    GTEST_SKIP() << "no mounts of its own";
  EXPECT_EQ(*counted, "1");
}

TEST_F(AddressSpaceTest, OfAProcessThatHasEndedNothingMoreIsLearnt) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    while (true)
      pause();
  }
  AddressSpace space(child, &modules_, &mappings_);
  EXPECT_TRUE(space.Refresh().ok());
  EXPECT_FALSE(space.is_gone());
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(space.Refresh().ok());
  EXPECT_TRUE(space.is_gone());
}

TEST_F(AddressSpaceTest, OfAProcessThatIsGoneTheFilesStayKnown) {
  Refresh();
  const auto pc = reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
  const MappingId mapping = space_.Find(pc)->mapping;
  space_.Release();
  EXPECT_TRUE(space_.known().OpenFileOf(mappings_[mapping]).valid());
  EXPECT_NE(space_.known().ModuleOf(mapping), nullptr);
}

TEST(EndedProcessTest, ItsMappingsStayKnownAndRefreshingIsAnError) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    close(pipe_ends[1]);
    _exit(read(pipe_ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  std::vector<Mapping> mappings;
  ModuleCache modules;
  AddressSpace space(child, &modules, &mappings);
  ASSERT_TRUE(space.Refresh().ok());
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  const Result<RefreshOutcome> outcome = space.Refresh();
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.status().message().find(std::to_string(child)), std::string::npos);
  EXPECT_TRUE(space.Find(reinterpret_cast<uint64_t>(&CodeOf)).has_value());
  AddressSpace late(child, &modules, &mappings);
  EXPECT_TRUE(late.Refresh().status().message().starts_with(
      "cannot open the mappings of process " + std::to_string(child) + ": No such "));
}

// Whose user makes us wait for it.
TEST(LateMapsTest, MappingsThatAreNotReadInTimeAreReadLater) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can make a process of another user";
  constexpr GuardedUser kMallory{.id = 61001};
  const ProcessOfUser process(kMallory.id);
  ASSERT_TRUE(process.is_ready());
  const auto pc = reinterpret_cast<uint64_t>(&CodeOf);
  const LateUser mallory(kMallory);
  ModuleCache modules;
  std::vector<Mapping> mappings;
  AddressSpace space(process.pid(), &modules, &mappings);
  const Result<RefreshOutcome> outcome = space.Refresh();
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome.value().is_late);
  EXPECT_TRUE(outcome.value().is_incomplete);
  EXPECT_FALSE(space.MayRefresh());
  EXPECT_FALSE(space.FindOrRefresh(pc).has_value());
  EXPECT_EQ(space.postponed(), 1u);
  EXPECT_EQ(space.refreshes(), 0u);
  ASSERT_TRUE(mallory.Release());
  const uint64_t deadline_ns = MonotonicNs() + kLongReadNs;
  while (!space.FindOrRefresh(pc).has_value() && MonotonicNs() < deadline_ns) {
  }
  EXPECT_TRUE(space.Find(pc).has_value());
}

}  // namespace
}  // namespace heapprofd
