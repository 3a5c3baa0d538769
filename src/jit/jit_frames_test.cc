#include "jit/jit_frames.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

// Of one function of 256 bytes (jit/jit_names.h has the format).
std::string JitdumpOfOne(uint64_t address, const std::string& name) {
  std::string bytes;
  const auto add = [&bytes](auto number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  for (const uint32_t word : {0x4A695444u, 1u, 40u, 0u, 0u, 7u})
    add(word);
  bytes.resize(40);
  constexpr uint32_t kLoadBytes = 16 + 2 * 4 + 4 * 8;
  for (const uint32_t word : {0u, static_cast<uint32_t>(kLoadBytes + name.size() + 1)})
    add(word);
  add(uint64_t{1});
  for (const uint32_t word : {7u, 7u})
    add(word);
  for (const uint64_t word : {address, address, uint64_t{256}, uint64_t{0}})
    add(word);
  return bytes + name + '\0';
}

// A process with a root directory of its own, as in a container.
class JitFramesTest : public testing::Test {
 protected:
  JitFramesTest()
      : root_(fs::path(testing::TempDir()) /
              ("jit_root_" + std::to_string(getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(root_ / "tmp");
    fd_ = ScopedFd(open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }

  ~JitFramesTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::ofstream(root_ / path) << text;
  }

  FrameId AddFrame(const std::string& path, uint64_t rel_pc) {
    Mapping mapping;
    mapping.start = 0x7000;
    mapping.end = 0x9000;
    mapping.path = path;
    profile_.mappings.push_back(mapping);
    profile_.frames.push_back(
        {.mapping = static_cast<MappingId>(profile_.mappings.size() - 1),
         .rel_pc = rel_pc,
         .lines = {}});
    return static_cast<FrameId>(profile_.frames.size() - 1);
  }

  JitReport NameFrames() {
    return NameJitFrames(CodeOf(profile_),
                         {.root_fd = fd_.get(), .pids = {7, 4711}, .uid = getuid()});
  }

  std::string NameOf(FrameId id) const {
    const auto& lines = profile_.frames[id].lines;
    return lines.empty() ? "" : lines[0].function.str();
  }

  fs::path root_;
  ScopedFd fd_;
  TargetProfile profile_;
};

TEST_F(JitFramesTest, FramesInAnonymousMemoryAreNamedFromThePerfMapInTheTargetsRoot) {
  Write("tmp/perf-7.map", "7100 100 compiled\n");
  const FrameId jit = AddFrame("", 0x120);
  const FrameId other = AddFrame("//anon", 0x500);
  const FrameId library = AddFrame("/usr/lib/libc.so.6", 0x120);
  const JitReport report = NameFrames();
  EXPECT_EQ(NameOf(jit), "compiled");
  EXPECT_EQ(NameOf(other), "");
  EXPECT_EQ(NameOf(library), "");
  EXPECT_EQ(report.frames, 2u);
  EXPECT_EQ(report.unnamed_frames, 1u);
  EXPECT_EQ(report.mappings, std::vector<MappingId>{1});
}

TEST_F(JitFramesTest, AddressesOutsideOfEveryMappingAreNamedToo) {
  Write("tmp/perf-4711.map", "a000 100 freed_since\n");
  profile_.frames.push_back({.mapping = kNoId, .rel_pc = 0xa010, .lines = {}});
  NameFrames();
  EXPECT_EQ(NameOf(0), "freed_since");
}

TEST_F(JitFramesTest, FramesWithANameKeepIt) {
  Write("tmp/perf-7.map", "7000 1000 compiled\n");
  const FrameId id = AddFrame("", 0x120);
  profile_.frames[id].lines.push_back(
      {.function = "kept", .system_name = "", .file = "", .line = 0});
  EXPECT_EQ(NameFrames().frames, 0u);
  EXPECT_EQ(NameOf(id), "kept");
}

TEST_F(JitFramesTest, LinksLeadNowhereOutsideOfTheTargetsRoot) {
  const fs::path outside = root_.string() + "_outside";
  std::ofstream(outside) << "7000 1000 stolen\n";
  fs::create_symlink(outside, root_ / "tmp/perf-7.map");
  const FrameId id = AddFrame("", 0x120);
  NameFrames();
  EXPECT_EQ(NameOf(id), "");
  fs::remove(outside);
}

TEST_F(JitFramesTest, FilesThatWereNotReadAreNoReasonToAdviseMakingThem) {
  Write("tmp/perf-7.map", "7100 100 compiled\n");
  const FrameId id = AddFrame("", 0x120);
  const ScopedFd cancel(eventfd(1, EFD_CLOEXEC));
  const JitReport report =
      NameJitFrames(CodeOf(profile_),
                    {.root_fd = fd_.get(), .pids = {7}, .uid = getuid()}, cancel.get());
  EXPECT_EQ(NameOf(id), "");
  EXPECT_EQ(report.unnamed_frames, 1u);
  EXPECT_EQ(report.error, "nobody waited for it");
}

TEST_F(JitFramesTest, AFileThatDoesNotOpenInTimeIsNoReasonEither) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root waits for others' files";
  AddFrame("/tmp/jit-7.dump", 0x120);
  Write("tmp/jit-7.dump", "");
  const JitReport report = NameJitFrames(
      CodeOf(profile_),
      {.root_fd = fd_.get(), .pids = {}, .uid = getuid(), .patience_ns = 0});
  EXPECT_EQ(report.unnamed_frames, 1u);
  EXPECT_EQ(report.error, "/tmp/jit-7.dump did not open in time");
}

TEST_F(JitFramesTest, JitdumpsThatWereLateWhileItRanAreReadAtItsEnd) {
  const FrameId id = AddFrame("", 0x120);
  Write("tmp/jit-7.dump", JitdumpOfOne(0x7100, "compiled"));
  const JitReport before = NameFrames();
  EXPECT_EQ(before.unnamed_frames, 1u);
  NameJitFrames(CodeOf(profile_), {.root_fd = fd_.get(),
                                   .pids = {7},
                                   .uid = getuid(),
                                   .late_files = {"/tmp/libc.so", "/tmp/jit-7.dump"}});
  EXPECT_EQ(NameOf(id), "compiled");
}

TEST_F(JitFramesTest, WithoutAnyFileTheFramesAreReported) {
  AddFrame("/memfd:doublemapper", 0x120);
  const JitReport report = NameFrames();
  EXPECT_EQ(report.unnamed_frames, 1u);
  EXPECT_EQ(report.error, "");
}

}  // namespace
}  // namespace heapprofd
