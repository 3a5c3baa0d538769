#include "symbolize/test_programs.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <memory>

namespace heapprofd {
namespace {

using ElfHandle = std::unique_ptr<Elf, int (*)(Elf*)>;

ElfHandle OpenElf(const ScopedFd& fd) {
  elf_version(EV_CURRENT);
  return {elf_begin(fd.get(), ELF_C_READ_MMAP, nullptr), &elf_end};
}

}  // namespace

TestProgram::TestProgram(const std::string& name)
    : path(std::string(HPD_TEST_PROGRAMS) + "/" + name),
      fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  HPD_CHECK(fd.valid());
  const ElfHandle elf = OpenElf(fd);
  const void* bytes = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(elf.get(), &bytes);
  if (size > 0)
    build_id.assign(static_cast<const char*>(bytes), static_cast<size_t>(size));
}

bool TestProgram::Exists(const std::string& name) {
  return access((std::string(HPD_TEST_PROGRAMS) + "/" + name).c_str(), R_OK) == 0;
}

SymbolRange FindSymbol(const TestProgram& program, const std::string& name) {
  const ElfHandle elf = OpenElf(program.fd);
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf.get(), section)) != nullptr;) {
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
  HPD_CHECK(!"the test program has the symbol");
}

}  // namespace heapprofd
