// What each line of source code holds: the stacks of a dump, by the files and lines that
// their frames name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "query/flame_tree.h"
#include "query/profile_view.h"

namespace heapprofd {

struct LineSums {
  int64_t own = 0;    // of stacks that end here: their innermost line that is known
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

struct SourceText {
  std::vector<std::string> lines;  // cut where they are long
  bool is_cut = false;             // it has more of them
};

// The first lines of the file at `path`. kNotFound: it is not at hand, or is no text.
Result<SourceText> ReadSource(const std::string& path);

}  // namespace heapprofd
