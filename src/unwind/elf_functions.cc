#include "unwind/elf_functions.h"

#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>

#include <cstring>
#include <memory>

#include "rt/machine.h"
#include "unwind/elf_image.h"

namespace heapprofd {
namespace {

constexpr uint64_t kMaxFileSize = uint64_t{8} << 30;  // bytes
constexpr size_t kMaxNameLength = 64;                 // longer names are not wanted

std::string_view NameAt(const Elf_Data& strings, uint64_t offset) {
  if (offset >= strings.d_size)
    return {};
  const char* name = static_cast<const char*>(strings.d_buf) + offset;
  const size_t limit = std::min<size_t>(strings.d_size - offset, kMaxNameLength + 1);
  const size_t length = strnlen(name, limit);
  return length < limit ? std::string_view(name, length) : std::string_view();
}

// What is still looked for, and what its tables may have.
struct Search {
  IsWanted is_wanted;
  uint64_t bytes_left;
  ElfContents* contents;
};

Elf_Data* SectionBytes(Elf_Scn* section, Search* search) {
  GElf_Shdr header;
  if (section == nullptr || gelf_getshdr(section, &header) == nullptr ||
      header.sh_size > search->bytes_left)
    return nullptr;
  search->bytes_left -= header.sh_size;
  Elf_Data* bytes = elf_getdata(section, nullptr);
  return bytes != nullptr && bytes->d_buf != nullptr ? bytes : nullptr;
}

void ReadTable(Elf* elf, Elf_Scn* section, uint32_t strings_index, Search* search) {
  Elf_Data* symbols = SectionBytes(section, search);
  const Elf_Data* strings = SectionBytes(elf_getscn(elf, strings_index), search);
  if (symbols == nullptr || strings == nullptr)
    return;
  const size_t count = symbols->d_size / sizeof(Elf64_Sym);
  for (size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(symbols, static_cast<int>(i), &symbol) == nullptr)
      return;
    const auto type = GELF_ST_TYPE(symbol.st_info);
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0 ||
        (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE))
      continue;
    const std::string_view name = NameAt(*strings, symbol.st_name);
    if (!name.empty() && search->is_wanted(name))
      search->contents->symbols.emplace(name, ElfSymbol{.address = symbol.st_value,
                                                        .size = symbol.st_size,
                                                        .is_function = type == STT_FUNC});
  }
}

void ReadTables(Elf* elf, uint32_t type, Search* search) {
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) != nullptr && header.sh_type == type)
      ReadTable(elf, section, header.sh_link, search);
  }
}

}  // namespace

ElfContents ReadElf(int fd,
                    IsWanted is_wanted,
                    bool use_full_table,
                    uint64_t max_tables) {
  ElfContents contents;

  struct stat status {};

  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<uint64_t>(status.st_size) > kMaxFileSize)
    return contents;
  elf_version(EV_CURRENT);
  const std::unique_ptr<Elf, int (*)(Elf*)> elf(elf_begin(fd, ELF_C_READ, nullptr),
                                                elf_end);
  GElf_Ehdr header;
  if (elf == nullptr || elf_kind(elf.get()) != ELF_K_ELF ||
      gelf_getehdr(elf.get(), &header) == nullptr ||
      header.e_machine != rt::kElfMachine || gelf_getclass(elf.get()) != ELFCLASS64)
    return contents;
  contents.is_valid = true;
  contents.code = CodeSegmentsOf(elf.get());
  Search search{.is_wanted = is_wanted, .bytes_left = max_tables, .contents = &contents};
  ReadTables(elf.get(), SHT_DYNSYM, &search);
  if (use_full_table)
    ReadTables(elf.get(), SHT_SYMTAB, &search);
  return contents;
}

}  // namespace heapprofd
