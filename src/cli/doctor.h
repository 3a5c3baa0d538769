// `heap_profile doctor`: what can be recorded here and why not, with what to do about it.
#pragma once

#include <string>
#include <vector>

namespace heapprofd {

// `arguments` behind the verb: nothing, or -p PIDS. Exit code: 0 when all is possible.
int RunDoctor(const std::vector<std::string>& arguments);

}  // namespace heapprofd
