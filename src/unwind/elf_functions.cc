#include "unwind/elf_functions.h"

#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

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

using ElfHandle = std::unique_ptr<Elf, int (*)(Elf*)>;

// nullptr: no ELF file for this machine.
ElfHandle OpenElf(int fd) {
  struct stat status {};

  ElfHandle none(nullptr, elf_end);
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<uint64_t>(status.st_size) > kMaxFileSize)
    return none;
  elf_version(EV_CURRENT);
  ElfHandle elf(elf_begin(fd, ELF_C_READ, nullptr), elf_end);
  GElf_Ehdr header;
  if (elf == nullptr || elf_kind(elf.get()) != ELF_K_ELF ||
      gelf_getehdr(elf.get(), &header) == nullptr ||
      header.e_machine != rt::kElfMachine || gelf_getclass(elf.get()) != ELFCLASS64)
    return none;
  return elf;
}

// Places of a file, those behind functions in it.
class PlaceReader {
 public:
  PlaceReader(Elf* elf,
              std::span<const uint64_t> functions,
              uint64_t reach,
              uint64_t max_tables)
      : elf_(elf),
        code_(CodeSegmentsOf(elf)),
        functions_(functions.begin(), functions.end()),
        reach_(reach),
        search_{.is_wanted = nullptr, .bytes_left = max_tables, .contents = nullptr} {
    std::ranges::sort(functions_);
  }

  std::vector<uint64_t> Read() {
    const std::optional<uint64_t> base = ProbeBase();
    Elf_Scn* section = nullptr;
    while ((section = elf_nextscn(elf_, section)) != nullptr) {
      GElf_Shdr header;
      if (gelf_getshdr(section, &header) == nullptr)
        continue;
      if (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB)
        ReadSymbols(section, header.sh_link);
      else if (header.sh_type == SHT_NOTE)
        ReadProbes(section, base);
    }
    return std::move(places_);
  }

 private:
  void Note(uint64_t address) {
    for (const CodeSegment& segment : code_.all()) {
      const uint64_t offset = address - segment.load_bias();
      const auto after = std::ranges::lower_bound(functions_, offset);
      if (segment.Holds(offset) && after != functions_.begin() &&
          offset - *std::prev(after) < reach_)
        places_.push_back(offset);
    }
  }

  // But for the marks of what is code and data ($x, $d).
  void ReadSymbols(Elf_Scn* section, uint32_t strings_index) {
    Elf_Data* symbols = SectionBytes(section, &search_);
    const Elf_Data* strings = SectionBytes(elf_getscn(elf_, strings_index), &search_);
    if (symbols == nullptr || strings == nullptr)
      return;
    const size_t count = symbols->d_size / sizeof(Elf64_Sym);
    for (size_t i = 0; i < count; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(symbols, static_cast<int>(i), &symbol) == nullptr)
        return;
      const auto type = GELF_ST_TYPE(symbol.st_info);
      if (symbol.st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_NOTYPE) &&
          !NameAt(*strings, symbol.st_name).starts_with('$'))
        Note(symbol.st_value);
    }
  }

  // Where the section lies by which linked addresses of probes are told to have moved.
  std::optional<uint64_t> ProbeBase() const {
    size_t names = 0;
    Elf_Scn* section = nullptr;
    if (elf_getshdrstrndx(elf_, &names) != 0)
      return std::nullopt;
    while ((section = elf_nextscn(elf_, section)) != nullptr) {
      GElf_Shdr header;
      const char* name = gelf_getshdr(section, &header) != nullptr
                             ? elf_strptr(elf_, names, header.sh_name)
                             : nullptr;
      if (name != nullptr && strcmp(name, ".stapsdt.base") == 0)
        return header.sh_addr;
    }
    return std::nullopt;
  }

  void ReadProbes(Elf_Scn* section, std::optional<uint64_t> base) {
    constexpr std::string_view kOwner("stapsdt\0", 8);  // with its end
    constexpr uint32_t kProbe = 3;
    Elf_Data* notes = SectionBytes(section, &search_);
    GElf_Nhdr note;
    size_t name = 0;
    size_t description = 0;
    size_t at = 0;
    while (notes != nullptr &&
           (at = gelf_getnote(notes, at, &note, &name, &description)) != 0) {
      const char* bytes = static_cast<const char*>(notes->d_buf);
      uint64_t address = 0;
      uint64_t linked_base = 0;
      if (note.n_type != kProbe || note.n_descsz < 2 * sizeof(address) ||
          std::string_view(bytes + name, note.n_namesz) != kOwner)
        continue;
      memcpy(&address, bytes + description, sizeof(address));
      memcpy(&linked_base, bytes + description + sizeof(address), sizeof(linked_base));
      Note(base ? address + (*base - linked_base) : address);
    }
  }

  Elf* elf_;
  CodeSegments code_;
  std::vector<uint64_t> functions_;
  uint64_t reach_;
  Search search_;
  std::vector<uint64_t> places_;
};

}  // namespace

std::vector<uint64_t> ReadPlaces(int fd,
                                 std::span<const uint64_t> functions,
                                 uint64_t reach,
                                 uint64_t max_tables) {
  const ElfHandle elf = OpenElf(fd);
  if (elf == nullptr)
    return {};
  return PlaceReader(elf.get(), functions, reach, max_tables).Read();
}

ElfContents ReadElf(int fd,
                    IsWanted is_wanted,
                    bool use_full_table,
                    uint64_t max_tables) {
  ElfContents contents;
  const ElfHandle elf = OpenElf(fd);
  if (elf == nullptr)
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
