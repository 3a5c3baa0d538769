// `heap_profile record` and the compatibility name `perfetto`: recordings described by a
// trace configuration.
#pragma once

#include <string>
#include <vector>

namespace heapprofd {

// Everything behind the verb; gives the exit code.
int RunRecordVerb(const std::vector<std::string>& arguments);

// As Perfetto's client: the output is one trace file.
int RunPerfettoCommand(const std::vector<std::string>& arguments);

}  // namespace heapprofd
