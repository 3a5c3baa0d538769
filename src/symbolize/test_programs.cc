#include "symbolize/test_programs.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace heapprofd {
namespace {

using ElfHandle = std::unique_ptr<Elf, int (*)(Elf*)>;

ElfHandle OpenElf(const ScopedFd& fd) {
  elf_version(EV_CURRENT);
  return {elf_begin(fd.get(), ELF_C_READ_MMAP, nullptr), &elf_end};
}

std::string PathOf(const std::string& name) {
  return name.starts_with('/') ? name : std::string(HPD_TEST_PROGRAMS) + "/" + name;
}

}  // namespace

ScratchDirectory::ScratchDirectory() {
  std::string pattern = std::filesystem::temp_directory_path() / "symbolize_test_XXXXXX";
  HPD_CHECK(mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TestProgram::TestProgram(const std::string& name)
    : path(PathOf(name)), fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  HPD_CHECK(fd.valid());
  const ElfHandle elf = OpenElf(fd);
  const void* bytes = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(elf.get(), &bytes);
  if (size > 0)
    build_id.assign(static_cast<const char*>(bytes), static_cast<size_t>(size));
}

bool TestProgram::Exists(const std::string& name) {
  return access(PathOf(name).c_str(), R_OK) == 0;
}

SymbolRange FindSymbol(const TestProgram& program, const std::string& name) {
  const ElfHandle elf = OpenElf(program.fd);
  for (Elf_Scn* section = nullptr;
       (section = elf_nextscn(elf.get(), section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_SYMTAB)
      continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    GElf_Sym symbol;
    for (int i = 0; gelf_getsym(data, i, &symbol) != nullptr; ++i) {
      if (name == elf_strptr(elf.get(), header.sh_link, symbol.st_name))
        return {.start = symbol.st_value, .end = symbol.st_value + symbol.st_size};
    }
  }
  const bool has_symbol = false;
  HPD_CHECK(has_symbol);
}

SectionRange FindSection(const TestProgram& program, const std::string& name) {
  const ElfHandle elf = OpenElf(program.fd);
  size_t names = 0;
  HPD_CHECK(elf_getshdrstrndx(elf.get(), &names) == 0);
  for (Elf_Scn* section = nullptr;
       (section = elf_nextscn(elf.get(), section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) != nullptr &&
        name == elf_strptr(elf.get(), names, header.sh_name))
      return {.offset = header.sh_offset, .size = header.sh_size};
  }
  const bool has_section = false;
  HPD_CHECK(has_section);
}

std::vector<std::vector<SourceLine>> SymbolizeAddresses(
    ElfSymbolizer& symbolizer, std::span<const uint64_t> addresses) {
  SymbolAnswers table;
  HPD_CHECK(symbolizer.Symbolize(addresses, table).ok());
  std::vector<std::vector<SourceLine>> answers;
  for (const uint64_t address : addresses)
    answers.push_back(table.ToSourceLines(table.Find(address).value()));
  return answers;
}

}  // namespace heapprofd
