// Names for people of the frames and symbols of an imported trace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tables/imported_trace.h"

namespace heapprofd {

class FrameNames {
 public:
  // `trace` must outlive this and not change.
  explicit FrameNames(const ImportedTrace& trace) : trace_(trace) {}

  // Demangled; each text once, as that is slow. The view lives as long as this.
  std::string_view Demangled(StringId name);

 private:
  const ImportedTrace& trace_;
  std::vector<std::string> demangled_;
  std::vector<bool> is_known_;
};

// Where the code of each frame comes from, as Perfetto's UI marks Java stacks: "interp",
// "aot", "jit", "common-frame" (the runtime's own) or "" (anything else). By frame; looks
// at the type of the frame, else at the name of its mapping.
std::vector<const char*> FrameAnnotations(const ImportedTrace& trace);

}  // namespace heapprofd
