#include "symbolize/elf_module.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "symbolize/dwarf/dwarf_check.h"

namespace heapprofd {
namespace {

// Raw bytes, empty when the image has none.
std::string BuildIdOf(Elf* elf) {
  const void* bytes = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(elf, &bytes);
  return size <= 0
             ? std::string()
             : std::string(static_cast<const char*>(bytes), static_cast<size_t>(size));
}

std::string DescribeBuildId(const std::string& build_id) {
  return build_id.empty() ? "no build id" : "build id " + HexEncode(build_id);
}

// libdwfl would also unpack compressed images, without a limit; what a process has mapped
// is never one.
Status CheckElfMagic(int fd, const std::string& what) {
  struct stat status;
  if (fstat(fd, &status) != 0)
    return Status::FromErrno(what, errno);
  char magic[SELFMAG];
  if (!S_ISREG(status.st_mode) || pread(fd, magic, SELFMAG, 0) != SELFMAG ||
      memcmp(magic, ELFMAG, SELFMAG) != 0)
    return Status(StatusCode::kCorrupt, what + ": not an ELF file");
  return Status();
}

}  // namespace

// Gives what was found before. The separate file is asked for first and once; where there
// is none, only the file to which dwz has moved what several files share is asked for.
// libdwfl's own signature.
// NOLINTNEXTLINE(readability-function-size)
int ElfModule::FindDebugInfoForLibdwfl(Dwfl_Module*,
                                       void** user,
                                       const char*,
                                       Dwarf_Addr,
                                       const char*,
                                       const char*,
                                       GElf_Word,
                                       char** found) {
  auto* const self = static_cast<ElfModule*>(*user);
  if (self == nullptr)
    return -1;
  const DebugFiles& files = self->debug_files_;
  const bool is_debug =
      files.debug.valid() && !std::exchange(self->has_given_debug_, true);
  const ScopedFd& fd = is_debug ? files.debug : files.shared;
  if (!fd.valid())
    return -1;
  *found = strdup((is_debug ? files.debug_path : files.shared_path).c_str());
  return fcntl(fd.get(), F_DUPFD_CLOEXEC, 0);
}

Result<std::unique_ptr<ElfModule>> ElfModule::Open(const ModuleFile& file,
                                                   DebugFiles debug_files) {
  std::unique_ptr<ElfModule> module(new ElfModule);
  module->debug_files_ = std::move(debug_files);
  module->callbacks_.find_elf = dwfl_build_id_find_elf;
  module->callbacks_.find_debuginfo = FindDebugInfoForLibdwfl;
  module->dwfl_.reset(dwfl_begin(&module->callbacks_));
  HPD_CHECK(module->dwfl_ != nullptr);
  HPD_TRY(module->OpenFile(file));
  module->FindDebugInfo(file.build_id);
  module->mini_debuginfo_ = MiniDebugInfo::Read(module->images_.front().elf);
  if (module->mini_debuginfo_.elf() != nullptr)
    module->images_.push_back(
        {module->mini_debuginfo_.elf(), module->images_.front().bias});
  return module;
}

Status ElfModule::OpenFile(const ModuleFile& file) {
  const std::string what = "cannot read symbols of " + file.path;
  HPD_TRY(CheckElfMagic(file.fd, what));
  const int own_fd = fcntl(file.fd, F_DUPFD_CLOEXEC, 0);
  if (own_fd < 0)
    return Status::FromErrno(what, errno);
  dwfl_report_begin(dwfl_.get());
  module_ =
      dwfl_report_elf(dwfl_.get(), file.path.c_str(), file.path.c_str(), own_fd, 0, true);
  if (module_ == nullptr)
    close(own_fd);  // else libdwfl closes it
  void** user = nullptr;
  if (module_ != nullptr && dwfl_module_info(module_, &user, nullptr, nullptr, nullptr,
                                             nullptr, nullptr, nullptr) != nullptr)
    *user = this;
  dwfl_report_end(dwfl_.get(), nullptr, nullptr);
  GElf_Addr bias = 0;
  Elf* elf = module_ == nullptr ? nullptr : dwfl_module_getelf(module_, &bias);
  GElf_Ehdr header;
  if (elf == nullptr || gelf_getehdr(elf, &header) == nullptr)
    return Status(StatusCode::kCorrupt, what + ": " + dwfl_errmsg(-1));
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
    return Status(StatusCode::kCorrupt,
                  what + ": neither a program nor a shared library");
  const std::string build_id = BuildIdOf(elf);
  if (build_id != file.build_id)
    return Status(StatusCode::kNotFound,
                  what + ": the file has " + DescribeBuildId(build_id) +
                      ", the process ran " + DescribeBuildId(file.build_id) +
                      "; profile again, or put the old file back");
  images_.push_back({elf, bias});
  return Status();
}

void ElfModule::FindDebugInfo(const std::string& build_id) {
  Dwarf_Addr bias = 0;
  Dwarf* dwarf = dwfl_module_getdwarf(module_, &bias);
  if (dwarf == nullptr || !IsSafeToRead(dwarf))
    return;
  Elf* elf = dwarf_getelf(dwarf);
  const bool separate = elf != images_.front().elf;
  if (separate && !build_id.empty() && BuildIdOf(elf) != build_id)
    return;
  dwarf_ = dwarf;
  dwarf_bias_ = bias;
  if (separate)
    images_.push_back({elf, bias});
}

}  // namespace heapprofd
