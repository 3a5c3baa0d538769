// One ELF file of a target, open together with the debug information that belongs to it.
//
// The debug information is that of the file itself or of a separate file, found in the
// user's symbol directories or by libdwfl in its standard places: by build id, by
// .gnu_debuglink beside the file and below /usr/lib/debug, and by debuginfod when
// DEBUGINFOD_URLS is set. A separate file with another build id is never used.
//
// Addresses are those of the ELF file (p_vaddr), as Mapping::ToRelPc gives them. One
// thread per module.
#pragma once

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "symbolize/mini_debuginfo.h"
#include "symbolize/symbol_finder.h"

namespace heapprofd {

struct ModuleFile {
  int fd = -1;       // readable, stays with the caller
  std::string path;  // as the target sees it: names the file and says where to look for
                     // debug links
  std::string build_id;  // raw bytes the file must have; empty: the file must have none
};

// Directories for separate debug files, in libdwfl's syntax: "" is the file's own
// directory, a relative name is below that, and in absolute ones .build-id/xx/yy.debug is
// tried as well.
inline constexpr char kStandardDebugPath[] = "+:.debug:/usr/lib/debug";

class ElfModule {
 public:
  // `finder`, if there is one, is asked for debug information before the standard places.
  // kNotFound: the file has another build id. kCorrupt: it is not an ELF image.
  static Result<std::unique_ptr<ElfModule>> Open(const ModuleFile& file,
                                                 const std::string& debug_path,
                                                 SymbolFinder* finder = nullptr);

  // Null when there is no DWARF for this module.
  Dwarf* dwarf() const { return dwarf_; }

  // The file that holds it; empty: the module's own.
  std::string debug_file_path() const;

  // A bias is what to subtract from a module address before it is looked up in this image
  // or in dwarf(): other than 0 only for prelinked files.
  uint64_t dwarf_bias() const { return dwarf_bias_; }

  struct Image {
    Elf* elf;
    uint64_t bias;
  };

  // Every image that may hold symbols of this module: the file, its debug file, its
  // .gnu_debugdata.
  const std::vector<Image>& images() const { return images_; }

 private:
  struct DwflCloser {
    void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
  };

  ElfModule() = default;
  static int FindDebugInfoForLibdwfl(Dwfl_Module* module,
                                     void** user,
                                     const char* name,
                                     Dwarf_Addr start,
                                     const char* file,
                                     const char* debug_link,
                                     GElf_Word checksum,
                                     char** found);
  Status OpenFile(const ModuleFile& file);
  void FindDebugInfo(const std::string& build_id);

  SymbolFinder* finder_ = nullptr;
  std::string debug_path_;
  char* debug_path_pointer_ = nullptr;  // libdwfl reads the path through this
  Dwfl_Callbacks callbacks_ = {};
  std::unique_ptr<Dwfl, DwflCloser> dwfl_;
  Dwfl_Module* module_ = nullptr;  // owned by dwfl_
  Dwarf* dwarf_ = nullptr;         // owned by dwfl_
  uint64_t dwarf_bias_ = 0;
  MiniDebugInfo mini_debuginfo_;
  std::vector<Image> images_;
};

}  // namespace heapprofd
