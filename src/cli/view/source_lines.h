// What each line of source code holds: the stacks of a dump, by the files and lines that
// their frames name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/status.h"
#include "query/flame_tree.h"
#include "query/profile_view.h"

namespace heapprofd {

struct LineSums {
  int64_t own = 0;    // of stacks whose holder's line it is; a holder may have none
  int64_t total = 0;  // of stacks that come through here, each once
  uint32_t last_stack = 0;
};

struct FileSums {
  LineSums all;
  std::map<uint32_t, LineSums> lines;
};

using SumsByFile = std::map<StringId, FileSums>;

// kUnavailable when cancelled.
Result<SumsByFile> SumByLine(const ImportedTrace& trace,
                             ValuesByCallsite values,
                             ProfileView view,
                             const CancelFlag& cancelled);

// As the page reads them: at most `most` of the files, those with most memory first, and
// how many there are.
nlohmann::json SourcesJson(const ImportedTrace& trace,
                           const SumsByFile& sums,
                           size_t most);

// One of them, without its text: the lines with most memory.
nlohmann::json SourceJson(const ImportedTrace& trace, const SumsByFile::value_type& file);

struct SourceText {
  std::vector<std::string> lines;  // cut where they are long
  bool is_cut = false;             // it has more of them
};

// The first lines of the file at `path`. kNotFound: it is not at hand, or is no text.
Result<SourceText> ReadSource(const std::string& path);

}  // namespace heapprofd
