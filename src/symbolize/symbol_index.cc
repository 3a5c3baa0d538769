#include "symbolize/symbol_index.h"

#include <gelf.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <vector>

namespace heapprofd {
namespace {

// Names are cut here: only hostile files have longer ones.
constexpr size_t kMaxNameLength = 64 << 10;
// Aliases that agree in this many bytes keep the order of the table.
constexpr size_t kMaxRankedLength = 256;

struct Symbol {
  uint64_t start;
  uint64_t end;  // of a symbol without size: of its section
  const char* name;
  bool has_size;
  bool is_exported;
};

std::string_view NameOf(const char* name, size_t max_length) {
  const std::string_view text(name, strnlen(name, max_length));
  return text.substr(0, text.find('@'));  // "memcpy@@GLIBC_2.14"
}

// Smaller is better.
auto Rank(const Symbol& symbol) {
  const std::string_view name = NameOf(symbol.name, kMaxRankedLength);
  const size_t underscores = std::min(name.find_first_not_of('_'), name.size());
  return std::tuple(!symbol.is_exported, underscores, name.size(), name);
}

bool ByStartThenRank(const Symbol& a, const Symbol& b) {
  return a.start != b.start ? a.start < b.start : Rank(a) < Rank(b);
}

bool IsFunction(const GElf_Sym& symbol, const GElf_Shdr& section) {
  if ((section.sh_flags & SHF_EXECINSTR) == 0)
    return false;
  switch (GELF_ST_TYPE(symbol.st_info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC:
    case STT_NOTYPE:
      return symbol.st_value >= section.sh_addr &&
             symbol.st_value - section.sh_addr < section.sh_size;
    default:
      return false;
  }
}

// Section headers of one image, by index: each symbol needs the one it is defined in.
std::vector<GElf_Shdr> SectionsOf(Elf* elf) {
  std::vector<GElf_Shdr> sections(1);
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header = {};
    gelf_getshdr(section, &header);
    sections.push_back(header);
  }
  return sections;
}

class SymbolReader {
 public:
  explicit SymbolReader(const ElfModule::Image& image)
      : image_(image), sections_(SectionsOf(image.elf)) {}

  // Reads the first table of `type`: an honest file has one, a hostile one could repeat
  // it endlessly.
  void Read(GElf_Word type, std::vector<Symbol>& symbols) const {
    const auto found = std::ranges::find(sections_, type, &GElf_Shdr::sh_type);
    if (found == sections_.end())
      return;
    Elf_Scn* section =
        elf_getscn(image_.elf, static_cast<size_t>(found - sections_.begin()));
    Elf_Data* data = section == nullptr ? nullptr : elf_getdata(section, nullptr);
    if (data == nullptr || found->sh_entsize == 0)
      return;
    const uint64_t count = data->d_size / found->sh_entsize;
    symbols.reserve(symbols.size() + std::min(count, data->d_size / sizeof(Elf32_Sym)));
    for (int i = 0; static_cast<uint64_t>(i) < std::min<uint64_t>(count, INT32_MAX); ++i)
      ReadSymbol(data, i, found->sh_link, symbols);
  }

 private:
  void ReadSymbol(Elf_Data* data,
                  int index,
                  size_t strings,
                  std::vector<Symbol>& symbols) const {
    GElf_Sym symbol;
    if (gelf_getsym(data, index, &symbol) == nullptr || symbol.st_shndx == SHN_UNDEF ||
        symbol.st_shndx >= sections_.size())
      return;
    const GElf_Shdr& section = sections_[symbol.st_shndx];
    if (!IsFunction(symbol, section))
      return;
    const char* name = elf_strptr(image_.elf, strings, symbol.st_name);
    if (name == nullptr || *name == '\0' ||
        *name == '.')  // ".L": labels inside a function
      return;
    const uint64_t room = section.sh_size - (symbol.st_value - section.sh_addr);
    const uint64_t size = symbol.st_size == 0 ? room : std::min(room, symbol.st_size);
    const uint64_t start = symbol.st_value + image_.bias;
    symbols.push_back({.start = start,
                       .end = start + size,
                       .name = name,
                       .has_size = symbol.st_size != 0,
                       .is_exported = GELF_ST_BIND(symbol.st_info) != STB_LOCAL});
  }

  ElfModule::Image image_;
  std::vector<GElf_Shdr> sections_;
};

// `symbols` by start; those with a size are in `names` already.
void AddWithoutSize(const std::vector<Symbol>& symbols, RangeMap<const char*>* names) {
  RangeMap<const char*> sized = *names;
  sized.Build();
  for (size_t i = 0; i < symbols.size(); ++i) {
    const Symbol& symbol = symbols[i];
    const bool is_alias = i > 0 && symbols[i - 1].start == symbol.start;
    if (symbol.has_size || is_alias || sized.Find(symbol.start))
      continue;
    const auto next =
        std::find_if(symbols.begin() + static_cast<ptrdiff_t>(i), symbols.end(),
                     [&](const Symbol& other) { return other.start > symbol.start; });
    const uint64_t limit =
        next == symbols.end() ? symbol.end : std::min(symbol.end, next->start);
    names->Add(symbol.start, limit, symbol.name);
  }
}

}  // namespace

SymbolIndex::SymbolIndex(std::span<const ElfModule::Image> images) {
  std::vector<Symbol> symbols;
  for (const ElfModule::Image& image : images) {
    const SymbolReader reader(image);
    reader.Read(SHT_SYMTAB, symbols);
    reader.Read(SHT_DYNSYM, symbols);
  }
  std::stable_sort(symbols.begin(), symbols.end(), ByStartThenRank);

  // [covered_start, covered_end): held by better names of the same start
  uint64_t covered_start = 0;
  uint64_t covered_end = 0;
  for (const Symbol& symbol : symbols) {
    if (!symbol.has_size || (symbol.start == covered_start && symbol.end <= covered_end))
      continue;
    covered_end = symbol.end;
    covered_start = symbol.start;
    names_.Add(symbol.start, symbol.end, symbol.name);
  }
  if (!std::ranges::all_of(symbols, &Symbol::has_size))
    AddWithoutSize(symbols, &names_);
  names_.Build();
}

std::string_view SymbolIndex::Find(uint64_t address) const {
  const auto name = names_.Find(address);
  return name ? NameOf(*name, kMaxNameLength) : std::string_view();
}

}  // namespace heapprofd
