// Symbolizes the addresses of one module: from the disk cache, else from the file that
// the process had, else from one that the finder finds.
//
// Files are found and opened here, where no more is read of them than IdentifyElf does;
// they are parsed in a worker that has no rights and nothing but their descriptors. Only
// llvm-symbolizer, which the user has asked for, is run with ours.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "profile/model.h"
#include "symbolize/disk_cache.h"
#include "symbolize/elf_identity.h"
#include "symbolize/elf_symbolizer.h"
#include "symbolize/symbol_answers.h"
#include "symbolize/symbol_finder.h"
#include "symbolize/symbolize_profile.h"

namespace heapprofd {

struct ModuleRequest {
  struct Address {
    uint64_t rel_pc;
    uint64_t image_offset;  // where the mapping begins in the image, bytes
    uint64_t load_bias;     // by which rel_pc was made
  };

  std::string path;
  std::string build_id;            // raw bytes
  std::function<ScopedFd()> open;  // the process's own file; may be empty
  std::vector<Address> addresses;
};

struct ModuleAnswer {
  NoSymbolsReason reason = NoSymbolsReason::kNone;
  std::string error;
  bool has_debug_info = false;
  bool from_cache = false;
  // What was looked up for each of ModuleRequest::addresses: a key of `lines`. Empty when
  // these are the rel_pcs.
  std::vector<uint64_t> keys;
  SymbolAnswers lines;

  std::string Encode() const;
  static std::optional<ModuleAnswer> Decode(std::string bytes);
};

// What has become of a module whose reader did not survive it.
ModuleAnswer AnswerOfDeadWorker(const std::string& path, const std::string& cause);

class ModuleSymbolizer {
 public:
  // Both outlive this.
  ModuleSymbolizer(const SymbolizeOptions& options, SymbolFinder* finder)
      : options_(options), finder_(finder), cache_(options.cache_directory) {}

  ModuleAnswer Symbolize(const ModuleRequest& request);

 private:
  struct Source {
    int fd;  // source_
    std::string path;
    bool is_own = false;  // of the process itself
  };

  std::optional<Source> FindSource(const ModuleRequest& request, ModuleAnswer* answer);
  bool AnswerFromCache(const std::vector<uint64_t>& addresses,
                       ModuleAnswer* answer) const;
  void AnswerFromFile(const ModuleRequest& request,
                      const Source& source,
                      const std::vector<uint64_t>& addresses,
                      ModuleAnswer* answer);
  ModuleAnswer Parse(const ModuleFile& file,
                     DebugFiles debug_files,
                     const std::vector<uint64_t>& addresses) const;
  ModuleAnswer ParseWithoutRights(const ModuleFile& file,
                                  DebugFiles debug_files,
                                  const std::vector<uint64_t>& addresses) const;
  void Keep(const std::string& name) const;
  std::string CacheName(const ModuleRequest& request) const;
  std::string NotFoundMessage(const ModuleRequest& request,
                              const std::vector<RejectedFile>& rejected,
                              bool is_another) const;

  const SymbolizeOptions& options_;
  SymbolFinder* finder_;
  DiskCache cache_;
  SymbolAnswers cached_;  // of the current module, by ELF address
  ScopedFd source_;       // of the current module
};

// The address that a rel_pc stands for in the symbol file. Recorders that take one load
// bias for all segments of a file, as Android's do, and old versions of them, which take
// none, record others.
uint64_t AddressInFile(const ElfIdentity& file, const ModuleRequest::Address& address);

}  // namespace heapprofd
