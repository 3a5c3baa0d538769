// The one thing that a parser without rights may ask for: files of split DWARF, whose
// names are inside what it parses.
//
// In the parser open() raises SIGSYS (SystemCalls::kUseWhatIsOpenAndAsk). The handler
// sends the name to the process that has started it, which opens the file if it is what
// it should be, and gets a descriptor back. libdw notices nothing of it.
#pragma once

#include <string>

#include "base/scoped_fd.h"

namespace heapprofd {

class FileRequests {
 public:
  FileRequests();

  // Both -1 when there are no more descriptors: nothing is asked for then.
  int parser_fd() const { return parser_.get(); }

  int server_fd() const { return server_.get(); }

  // In the parser, before it loses its rights.
  void InstallInParser() const;

  // Answers one request.
  void Serve() const;

 private:
  ScopedFd parser_;
  ScopedFd server_;
};

// Invalid unless it is a regular ELF file with split DWARF: a name from a hostile file
// may be any.
ScopedFd OpenSplitDwarf(const std::string& path);

}  // namespace heapprofd
