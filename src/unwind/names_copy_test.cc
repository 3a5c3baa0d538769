#include "unwind/names_copy.h"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/files/proc_files.h"
#include "unwind/address_space.h"

namespace heapprofd {
namespace {

struct Part {
  Elf64_Word name;  // offset in .names
  Elf64_Word type;
  Elf64_Xword flags;
  Elf64_Off offset;
  Elf64_Xword size;
};

// An ELF file with code, symbols and debug information, each of them 1 MiB.
class Image {
 public:
  static constexpr uint64_t kPart = uint64_t{1} << 20;

  Image() : bytes_(4 * kPart, 'x') {
    Elf64_Ehdr header{};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_shoff = sizeof(header);
    header.e_shnum = 5;
    header.e_shstrndx = 1;
    memcpy(bytes_.data(), &header, sizeof(header));
    constexpr char kNames[] = "\0.names\0.text\0.symtab\0.debug_info";
    Set(0, {0, SHT_NULL, 0, 0, 0});
    Set(1, {1, SHT_STRTAB, 0, 4096, sizeof(kNames)});
    Set(2, {8, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, kPart, kPart});
    Set(3, {14, SHT_SYMTAB, 0, 2 * kPart, kPart});
    Set(4, {22, SHT_PROGBITS, 0, 3 * kPart, kPart});
    memcpy(bytes_.data() + 4096, kNames, sizeof(kNames));
  }

  void Set(size_t index, const Part& part) {
    Elf64_Shdr section{};
    section.sh_name = part.name;
    section.sh_type = part.type;
    section.sh_flags = part.flags;
    section.sh_offset = part.offset;
    section.sh_size = part.size;
    memcpy(bytes_.data() + sizeof(Elf64_Ehdr) + index * sizeof(section), &section,
           sizeof(section));
  }

  ScopedFd File() const {
    ScopedFd fd(memfd_create("image", MFD_CLOEXEC));
    EXPECT_EQ(write(fd.get(), bytes_.data(), bytes_.size()),
              static_cast<ssize_t>(bytes_.size()));
    return fd;
  }

 private:
  std::vector<char> bytes_;
};

char ByteAt(const ScopedFd& fd, uint64_t offset) {
  char byte = 0;
  EXPECT_EQ(pread(fd.get(), &byte, 1, static_cast<off_t>(offset)), 1);
  return byte;
}

uint32_t TypeOf(const ScopedFd& fd, size_t index) {
  Elf64_Shdr section{};
  EXPECT_EQ(pread(fd.get(), &section, sizeof(section),
                  static_cast<off_t>(sizeof(Elf64_Ehdr) + index * sizeof(section))),
            static_cast<ssize_t>(sizeof(section)));
  return section.sh_type;
}

TEST(NamesCopyTest, SymbolsAndDebugInformationAreThereAndCodeIsNot) {
  const NamesCopy copy = CopyForNames(Image().File().get(), 4 * Image::kPart);
  ASSERT_TRUE(copy.fd.valid());
  EXPECT_EQ(ByteAt(copy.fd, Image::kPart), '\0');
  EXPECT_EQ(ByteAt(copy.fd, 2 * Image::kPart), 'x');
  EXPECT_EQ(ByteAt(copy.fd, 4 * Image::kPart - 1), 'x');
  EXPECT_LT(copy.bytes, 2 * Image::kPart + 8192);

  struct stat status {};

  ASSERT_EQ(fstat(copy.fd.get(), &status), 0);
  EXPECT_LT(static_cast<uint64_t>(status.st_blocks) * 512, 2 * Image::kPart + 65536);
  EXPECT_EQ(write(copy.fd.get(), "y", 1), -1);
}

TEST(NamesCopyTest, DebugInformationThatIsTooMuchIsLeftOut) {
  const NamesCopy copy =
      CopyForNames(Image().File().get(), Image::kPart + Image::kPart / 2);
  ASSERT_TRUE(copy.fd.valid());
  EXPECT_EQ(ByteAt(copy.fd, 2 * Image::kPart), 'x');
  EXPECT_EQ(ByteAt(copy.fd, 3 * Image::kPart), '\0');
  EXPECT_EQ(TypeOf(copy.fd, 3), uint32_t{SHT_SYMTAB});
  EXPECT_EQ(TypeOf(copy.fd, 4), uint32_t{SHT_NOBITS});
}

TEST(NamesCopyTest, NothingIsMadeOfWhatIsTooLargeOrNoImage) {
  EXPECT_FALSE(CopyForNames(Image().File().get(), Image::kPart / 2).fd.valid());
  EXPECT_FALSE(CopyForNames(ScopedFd(open("/proc/self/maps", O_RDONLY)).get(), 1 << 20)
                   .fd.valid());
  Image lying;
  lying.Set(3, {14, SHT_SYMTAB, 0, uint64_t{1} << 40, 4096});
  EXPECT_FALSE(CopyForNames(lying.File().get(), 4 * Image::kPart).fd.valid());
  lying.Set(3, {14, SHT_SYMTAB, 0, 0, ~uint64_t{0}});
  EXPECT_FALSE(CopyForNames(lying.File().get(), 4 * Image::kPart).fd.valid());
}

bool IsOpen(const std::string& path) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (std::filesystem::read_symlink(entry.path(), error) == path)
      return true;
  }
  return false;
}

// A program that is mapped in this process, which is all that a process does with it.
class MappedFile {
 public:
  explicit MappedFile(const std::string& directory)
      : path_(directory + "/mapped-" + std::to_string(getpid())) {
    std::filesystem::copy_file("/proc/self/exe", path_);
    const ScopedFd fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    const std::vector<MapEntry> own = ParseMaps(ReadProcFile("/proc/self/maps"));
    for (const MapEntry& entry : own) {
      if (entry.executable &&
          entry.path == std::filesystem::read_symlink("/proc/self/exe"))
        size_ = entry.end - entry.start, offset_ = entry.offset;
    }
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd.get(),
                   static_cast<off_t>(offset_));
  }

  ~MappedFile() {
    std::error_code error;
    std::filesystem::remove(path_, error);
  }

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  void Unmap() { munmap(memory_, size_); }

  const std::string& path() const { return path_; }

  uint64_t code() const { return reinterpret_cast<uint64_t>(memory_); }

 private:
  std::string path_;
  void* memory_ = nullptr;
  size_t size_ = 0;
  uint64_t offset_ = 0;
};

TEST(NamesCopyTest, AFileThatNoProcessMapsKeepsNoMountBusyAndHasItsNames) {
  const ScopedFd shared(open("/dev/shm", O_PATH | O_CLOEXEC));
  if (!shared.valid() || IsOnRootMount(shared.get()) || access("/dev/shm", W_OK) != 0)
    GTEST_SKIP() << "/dev/shm is no mount that can be written to";
  std::vector<Mapping> mappings;
  ModuleCache modules(kOwnPatienceNs);
  AddressSpace space(getpid(), &modules, &mappings, /*files_ns=*/UINT64_MAX);
  MappedFile file("/dev/shm");
  ASSERT_TRUE(space.Refresh(file.code()).ok());
  const auto location = space.Find(file.code());
  ASSERT_TRUE(location.has_value());
  ASSERT_NE(location->module, nullptr);
  EXPECT_TRUE(IsOpen(file.path()));
  file.Unmap();
  ASSERT_TRUE(space.Refresh().ok());
  EXPECT_FALSE(IsOpen(file.path()));
  std::filesystem::remove(file.path());
  const ScopedFd names = space.known().OpenFileOf(mappings[location->mapping]);
  ASSERT_TRUE(names.valid());
  EXPECT_EQ(fcntl(names.get(), F_GET_SEALS) & F_SEAL_WRITE, F_SEAL_WRITE);
  EXPECT_NE(Module::Open(ScopedFd(dup(names.get()))), nullptr);
}

TEST(NamesCopyTest, AFileOfTheRootFileSystemStaysOpenForItMayBeRemoved) {
  const ScopedFd self(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (!IsOnRootMount(self.get()))
    GTEST_SKIP() << "this program is not on the root's mount";
  std::vector<Mapping> mappings;
  ModuleCache modules(kOwnPatienceNs);
  AddressSpace space(getpid(), &modules, &mappings, /*files_ns=*/UINT64_MAX);
  MappedFile file(std::filesystem::read_symlink("/proc/self/exe").parent_path());
  ASSERT_TRUE(space.Refresh(file.code()).ok());
  const auto location = space.Find(file.code());
  ASSERT_TRUE(location.has_value());
  file.Unmap();
  std::filesystem::remove(file.path());
  ASSERT_TRUE(space.Refresh().ok());
  EXPECT_TRUE(space.known().OpenFileOf(mappings[location->mapping]).valid());
}

}  // namespace
}  // namespace heapprofd
