// What is said when a recording has no samples.
#pragma once

#include <string>
#include <vector>

#include "record/trace_recording.h"

namespace heapprofd {

// Why, as far as it is known, and what to do: one line. `obstacle`: what the caller knows
// of the program that it has started; may be empty. `has_program`: it has started one.
std::string ReasonForNothing(const TraceRecording& recording,
                             const std::string& obstacle,
                             bool has_program);

// Programs that ran and could not be recorded, a line for each reason.
std::vector<std::string> ProgramWarnings(const TraceRecording& recording);

}  // namespace heapprofd
