// Which heap of a file is exported, and how: what `heap_profile export` and the page of
// `heap_profile view` ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "cli/inspect/comparison.h"
#include "export/formats.h"

namespace heapprofd {

// What of a file is exported. `option` begins the text of errors: "--view ".
struct ExportChoice {
  const ExportFormat* format = nullptr;
  View view = View::kSpace;
  std::optional<uint64_t> pid = {};   // unless the largest heap's
  std::optional<uint64_t> upid = {};  // of those that had one pid, and of several files
  std::string heap = {};              // "": the largest one

  Status SetFormat(const std::string& option, const std::string& name);
  Status SetView(const std::string& option, const std::string& name);
  Status SetPid(const std::string& option, const std::string& text);
};

// The text of a file. kNotFound: there is no such heap.
Result<std::string> Export(const OpenedFile& file, const ExportChoice& choice);

}  // namespace heapprofd
