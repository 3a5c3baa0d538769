// `heap_profile doctor`: what can be recorded here and why not, with what to do about it.
#pragma once

#include "cli/command_line.h"

namespace heapprofd {

CommandLine DoctorLine();

}  // namespace heapprofd
