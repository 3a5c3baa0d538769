#include "symbolize/dwarf/dwarf_check.h"

#include <gelf.h>

#include <string_view>

namespace heapprofd {
namespace {

// ".debug_str", also in .dwo files and in the old form of compressed sections
// (.zdebug_str).
bool HoldsStrings(std::string_view section) {
  return (section.find("debug_str") != std::string_view::npos ||
          section.find("debug_line_str") != std::string_view::npos) &&
         section.find("offsets") == std::string_view::npos;
}

bool EndsInString(Elf_Scn* section) {
  const Elf_Data* data = elf_getdata(section, nullptr);
  return data == nullptr || data->d_size == 0 || data->d_buf == nullptr ||
         static_cast<const char*>(data->d_buf)[data->d_size - 1] == '\0';
}

bool StringSectionsEnd(Elf* elf) {
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0)
    return false;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    const char* name = gelf_getshdr(section, &header) == nullptr
                           ? nullptr
                           : elf_strptr(elf, names, header.sh_name);
    if (name == nullptr || (HoldsStrings(name) && !EndsInString(section)))
      return false;
  }
  return true;
}

}  // namespace

bool IsSafeToRead(Dwarf* dwarf) {
  if (!StringSectionsEnd(dwarf_getelf(dwarf)))
    return false;
  Dwarf* alternate = dwarf_getalt(dwarf);
  return alternate == nullptr || StringSectionsEnd(dwarf_getelf(alternate));
}

}  // namespace heapprofd
