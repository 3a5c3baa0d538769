// One ELF file of a target, open together with the debug information that belongs to it.
//
// The debug information is that of the file itself or of a separate file, which has been
// found before (debug_files.h): nothing but split DWARF (.dwo) is opened here.
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
#include "symbolize/debug_files.h"
#include "symbolize/mini_debuginfo.h"

namespace heapprofd {

class ElfModule {
 public:
  // kNotFound: the file has another build id. kCorrupt: it is not an ELF image.
  static Result<std::unique_ptr<ElfModule>> Open(const ModuleFile& file,
                                                 DebugFiles debug_files = {});

  // Null when there is no DWARF for this module.
  Dwarf* dwarf() const { return dwarf_; }

  // The separate file that holds it; -1: the module's own does.
  int separate_dwarf_fd() const {
    return dwarf_ != nullptr && dwarf_getelf(dwarf_) != images_.front().elf
               ? debug_files_.debug.get()
               : -1;
  }

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

  DebugFiles debug_files_;
  bool has_given_debug_ = false;  // to libdwfl
  Dwfl_Callbacks callbacks_ = {};
  std::unique_ptr<Dwfl, DwflCloser> dwfl_;
  Dwfl_Module* module_ = nullptr;  // owned by dwfl_
  Dwarf* dwarf_ = nullptr;         // owned by dwfl_
  uint64_t dwarf_bias_ = 0;
  MiniDebugInfo mini_debuginfo_;
  std::vector<Image> images_;
};

}  // namespace heapprofd
