// ELF images in every form that linkers and tools leave them in: their rules are the
// same.
#include "unwind/module.h"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/files/proc_files.h"
#include "unwind/cfi_rules.h"

namespace heapprofd {
namespace {

using Bytes = std::vector<char>;

Bytes ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

ScopedFd FileOf(const Bytes& bytes) {
  ScopedFd fd(memfd_create("image", MFD_CLOEXEC));
  if (write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return {};
  return fd;
}

Elf64_Ehdr HeaderOf(const Bytes& bytes) {
  Elf64_Ehdr header;
  memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

void ChangeHeader(Bytes* bytes, const std::function<void(Elf64_Ehdr*)>& change) {
  Elf64_Ehdr header = HeaderOf(*bytes);
  change(&header);
  memcpy(bytes->data(), &header, sizeof(header));
}

void ChangeSegments(Bytes* bytes, const std::function<void(Elf64_Phdr*)>& change) {
  const Elf64_Ehdr header = HeaderOf(*bytes);
  for (size_t i = 0; i < header.e_phnum; ++i) {
    char* at = bytes->data() + header.e_phoff + i * sizeof(Elf64_Phdr);
    Elf64_Phdr segment;
    memcpy(&segment, at, sizeof(segment));
    change(&segment);
    memcpy(at, &segment, sizeof(segment));
  }
}

void HideSections(Elf64_Ehdr* header) {
  header->e_shoff = 0;
  header->e_shnum = 0;
  header->e_shstrndx = SHN_UNDEF;
}

constexpr uint64_t kFrames = 0x10000;  // ELF address, but for gold

// Of testdata/frames_*.S.
struct KnownRule {
  uint64_t offset;
  Rule rule;
};

#if defined(__x86_64__)
constexpr uint16_t kOtherMachine = EM_AARCH64;
constexpr KnownRule kKnown[] = {
    {0, {.kind = RuleKind::kSp, .cfa_offset = 8}},
    {1, {.kind = RuleKind::kSp, .cfa_offset = 16, .bp_slot = 2}},
    {5, {.kind = RuleKind::kSp, .cfa_offset = 48, .bp_slot = 2}},
    {6, {}},
    {0x100, {.kind = RuleKind::kUnwalkable}},
    {0x200, {}},
    {0x300, {.kind = RuleKind::kSp, .cfa_offset = 8}},
    {0x301, {}},
    {UINT64_MAX, {}},
};
#else
constexpr uint16_t kOtherMachine = EM_X86_64;
constexpr KnownRule kKnown[] = {
    {0, {.kind = RuleKind::kSp}},
    {4, {.kind = RuleKind::kSp}},
    {8, {.kind = RuleKind::kSp, .cfa_offset = 32, .bp_slot = 4, .return_slot = 3}},
    {12, {.kind = RuleKind::kBp, .cfa_offset = 32, .bp_slot = 4, .return_slot = 3}},
    {19, {.kind = RuleKind::kBp, .cfa_offset = 32, .bp_slot = 4, .return_slot = 3}},
    {20, {}},
    {0x84, {.kind = RuleKind::kSp, .cfa_offset = 16, .return_slot = 2}},
    {0x100, {.kind = RuleKind::kUnwalkable}},
    {0x200, {}},
    {0x300, {.kind = RuleKind::kSp}},
    {0x304, {}},
    {UINT64_MAX, {}},
};
#endif

void ExpectKnownRules(const std::shared_ptr<Module>& module, uint64_t frames = kFrames) {
  ASSERT_NE(module, nullptr);

  for (const KnownRule& known : kKnown)
    EXPECT_EQ(RuleForAddress(*module, frames + known.offset), known.rule)
        << std::hex << known.offset;
}

class FramesTest : public testing::TestWithParam<const char*> {};

TEST_P(FramesTest, RulesAreFoundHoweverTheImageWasLinked) {
  ExpectKnownRules(Module::Open(ScopedFd(open(GetParam(), O_RDONLY | O_CLOEXEC))),
                   HeaderOf(ReadFile(GetParam())).e_entry);
}

TEST_P(FramesTest, AnImageInMemoryHasTheSameRules) {
  const Bytes image = ReadFile(GetParam());
  ExpectKnownRules(Module::FromMemory(image), HeaderOf(image).e_entry);
}

INSTANTIATE_TEST_SUITE_P(Linked, FramesTest, testing::Values(HPD_TEST_FRAMES));

TEST(ModuleTest, WithoutSectionsTheSegmentsAreEnough) {
  Bytes image = ReadFile(HPD_TEST_EH_FRAME);
  ChangeHeader(&image, &HideSections);
  ExpectKnownRules(Module::Open(FileOf(image)));
}

TEST(ModuleTest, WithoutALookUpTableTheSectionIsEnough) {
  Bytes image = ReadFile(HPD_TEST_EH_FRAME);
  ChangeSegments(&image, [](Elf64_Phdr* segment) {
    if (segment->p_type == PT_GNU_EH_FRAME)
      segment->p_type = PT_NULL;
  });
  ExpectKnownRules(Module::Open(FileOf(image)));
}

TEST(ModuleTest, WithoutBothThereIsNoRule) {
  Bytes image = ReadFile(HPD_TEST_EH_FRAME);
  ChangeHeader(&image, &HideSections);
  ChangeSegments(&image, [](Elf64_Phdr* segment) { segment->p_type = PT_NULL; });
  const std::shared_ptr<Module> module = Module::Open(FileOf(image));
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(RuleForAddress(*module, kFrames).kind, RuleKind::kUnknown);
}

TEST(ModuleTest, AFileThatIsTruncatedLaterStillHasItsRules) {
  const ScopedFd file = FileOf(ReadFile(HPD_TEST_EH_FRAME));
  const std::shared_ptr<Module> module = Module::Open(ScopedFd(dup(file.get())));
  ASSERT_EQ(ftruncate(file.get(), 0), 0);
  ExpectKnownRules(module);
}

TEST(ModuleTest, AFileThatWasCutShortIsReadAsFarAsItGoes) {
  const Bytes whole = ReadFile(HPD_TEST_EH_FRAME);
  for (size_t size = 0; size < whole.size(); size += 97) {
    const std::shared_ptr<Module> module = Module::Open(
        FileOf(Bytes(whole.begin(), whole.begin() + static_cast<long>(size))));
    if (module != nullptr) {
      const Rule rule = RuleForAddress(*module, kFrames);
      EXPECT_TRUE(rule == Rule{} || rule == kKnown[0].rule) << size;
    }
  }
}

TEST(ModuleTest, ATableThatClaimsMoreThanTheFileHasIsNotCopied) {
  Bytes image = ReadFile(HPD_TEST_EH_FRAME);
  ChangeHeader(&image, [](Elf64_Ehdr* header) {
    header->e_shoff = UINT64_MAX - 64;
    header->e_shnum = 0xff00;
  });
  ChangeSegments(&image, [](Elf64_Phdr* segment) {
    if (segment->p_type != PT_LOAD)
      segment->p_filesz = UINT64_MAX;
  });
  const std::shared_ptr<Module> module = Module::Open(FileOf(image));
  if (module != nullptr) {
    EXPECT_EQ(RuleForAddress(*module, kFrames).kind, RuleKind::kUnknown);
  }
}

TEST(ModuleTest, TooLittleMemoryForAllOfItCostsRulesAndNothingElse) {
  const Bytes image = ReadFile(HPD_TEST_EH_FRAME);
  for (uint64_t max_bytes = 0; max_bytes < 4096; max_bytes += 23) {
    const std::shared_ptr<Module> module = Module::Open(FileOf(image), max_bytes);
    if (module == nullptr)
      continue;
    EXPECT_LE(module->bytes(), max_bytes);
    const Rule rule = RuleForAddress(*module, kFrames);
    EXPECT_TRUE(rule == Rule{} || rule == kKnown[0].rule) << max_bytes;
  }
  ExpectKnownRules(Module::Open(FileOf(image), 4096));
}

TEST(ModuleTest, AHugeSparseFileCostsNothing) {
  ScopedFd file = FileOf(ReadFile(HPD_TEST_EH_FRAME));
  ASSERT_EQ(ftruncate(file.get(), off_t{1} << 34), 0);
  ExpectKnownRules(Module::Open(std::move(file)));
}

TEST(ModuleTest, TheCodeIsThatOfTheExecutableSegments) {
  Bytes image = ReadFile(HPD_TEST_EH_FRAME);
  uint64_t expected = 0;
  ChangeSegments(&image, [&expected](Elf64_Phdr* segment) {
    if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0) {
      segment->p_vaddr += 0x7000;
      expected = segment->p_vaddr - segment->p_offset;
    }
  });
  ASSERT_NE(expected, 0u);
  const std::shared_ptr<Module> module = Module::Open(FileOf(image));
  ASSERT_EQ(module->code().all().size(), 1u);
  EXPECT_EQ(module->code().all().front().load_bias(), expected);
}

#if defined(__x86_64__)
constexpr uint64_t kSignalReturnAt = kFrames + 0x230;
constexpr uint64_t kEnds[] = {0x208, 0x210, 0x218};
#else
constexpr uint64_t kSignalReturnAt = kFrames + 0x204;
constexpr uint64_t kEnds[] = {0x210, 0x218};
#endif

// By its two instructions, where there is no unwind information for it.
TEST(ModuleTest, TheKernelsReturnFromSignalHandlersIsKnownByItsCode) {
  const Bytes image = ReadFile(HPD_TEST_EH_FRAME);
  for (const std::shared_ptr<Module>& module :
       {Module::FromMemory(image), Module::Open(FileOf(image))}) {
    ASSERT_NE(module, nullptr);
    EXPECT_EQ(RuleForAddress(*module, kSignalReturnAt - 1),
              Rule{.kind = RuleKind::kSignal});
    EXPECT_EQ(RuleForAddress(*module, kSignalReturnAt), Rule{});
  }
}

// As in musl, whose code has no unwind information.
TEST(ModuleTest, AStackEndsWhereWhatWasReturnedGoesToExit) {
  const std::shared_ptr<Module> module =
      Module::Open(FileOf(ReadFile(HPD_TEST_EH_FRAME)));
  ASSERT_NE(module, nullptr);
  for (const uint64_t end : kEnds) {
    EXPECT_EQ(RuleForAddress(*module, kFrames + end - 1), Rule{.kind = RuleKind::kEnd});
    EXPECT_EQ(RuleForAddress(*module, kFrames + end + 4), Rule{});
  }
  EXPECT_EQ(RuleForAddress(*module, kFrames + 0x220 - 1), Rule{});
  EXPECT_TRUE(module->BeginsExit(kFrames + 0x240));
  EXPECT_FALSE(module->BeginsExit(kFrames));
}

TEST(ModuleTest, WithoutItsFileNoCodeIsKnown) {
  const std::shared_ptr<Module> module =
      Module::Open(FileOf(ReadFile(HPD_TEST_EH_FRAME)));
  ASSERT_NE(module, nullptr);
  module->CloseFile();
  EXPECT_EQ(RuleForAddress(*module, kSignalReturnAt - 1), Rule{});
  EXPECT_EQ(RuleForAddress(*module, kFrames + kEnds[0] - 1), Rule{});
}

TEST(ModuleTest, ImagesOfOtherMachinesAreNoModules) {
  for (const auto& change : std::vector<std::function<void(Elf64_Ehdr*)>>{
           [](Elf64_Ehdr* header) { header->e_machine = kOtherMachine; },
           [](Elf64_Ehdr* header) { header->e_ident[EI_CLASS] = ELFCLASS32; },
           [](Elf64_Ehdr* header) { header->e_ident[0] = 0; }}) {
    Bytes image = ReadFile(HPD_TEST_EH_FRAME);
    ChangeHeader(&image, change);
    EXPECT_EQ(Module::Open(FileOf(image)), nullptr);
  }
}

std::string HexOf(const std::string& bytes) {
  std::string hex;
  for (const char c : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(c) >> 4];
    hex += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

TEST(ModuleTest, TheBuildIdIsFoundInASegmentOrASection) {
  Bytes image = ReadFile(HPD_TEST_EH_FRAME);
  EXPECT_EQ(HexOf(Module::Open(FileOf(image))->build_id()), "0123456789abcdef");
  Bytes without_sections = image;
  ChangeHeader(&without_sections, &HideSections);
  EXPECT_EQ(HexOf(Module::Open(FileOf(without_sections))->build_id()),
            "0123456789abcdef");
  ChangeSegments(&image, [](Elf64_Phdr* segment) {
    if (segment->p_type == PT_NOTE)
      segment->p_type = PT_NULL;
  });
  EXPECT_EQ(HexOf(Module::Open(FileOf(image))->build_id()), "0123456789abcdef");
}

// A mapping as /proc would show it, of a file that this process can open by its path.
MapEntry EntryOf(const char* path) {
  struct stat status {};

  EXPECT_EQ(stat(path, &status), 0);
  MapEntry entry;
  entry.start = 0x1000;
  entry.end = 0x2000;
  entry.executable = true;
  entry.inode = status.st_ino;
  entry.path = path;
  return entry;
}

TEST(ModuleCacheTest, AModuleIsSharedAsLongAsItIsUsed) {
  const MapEntry entry = EntryOf(HPD_TEST_EH_FRAME);
  ModuleCache cache(kOwnPatienceNs);
  std::shared_ptr<Module> first = cache.Get(getpid(), entry);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(cache.Get(getpid(), entry), first);
  EXPECT_TRUE(first->has_open_file());
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = open_files();
  first.reset();
  EXPECT_EQ(open_files(), before - 1);
  ExpectKnownRules(cache.Get(getpid(), entry));
}

// Reading the memory of a process can last for as long as its user likes.
TEST(ModuleCacheTest, TheVdsoIsOursWhateverProcessHasIt) {
  if (getauxval(AT_SYSINFO_EHDR) == 0)
    GTEST_SKIP() << "there is no vdso here";
  MapEntry entry;
  for (const MapEntry& own : ParseMaps(ReadProcFile("/proc/self/maps")))
    entry = own.path == "[vdso]" ? own : entry;
  ASSERT_NE(entry.end, 0u);
  ModuleCache cache(kOwnPatienceNs);
  constexpr pid_t kNone = 0;  // there is nothing to be read
  const std::shared_ptr<Module> module = cache.Get(kNone, entry);
  ASSERT_NE(module, nullptr);
  EXPECT_FALSE(module->build_id().empty());
  entry.end += 4096;
  EXPECT_EQ(cache.Get(kNone, entry), nullptr);
}

TEST(ModuleCacheTest, AFileIsOpenedByItsPathWhenTheProcessIsGone) {
  constexpr pid_t kNoProcess = 0x7fffffff;
  const MapEntry entry = EntryOf(HPD_TEST_EH_FRAME);
  ModuleCache cache(kOwnPatienceNs);
  ExpectKnownRules(cache.Get(kNoProcess, entry));
  MapEntry other = entry;
  ++other.inode;  // the path leads to another file by now
  EXPECT_EQ(cache.Get(kNoProcess, other), nullptr);
}

}  // namespace
}  // namespace heapprofd
