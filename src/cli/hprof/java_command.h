// heap_profile java: a heap dump of a running virtual machine, and what hprof's views say
// about it, in one command.
#pragma once

#include <string>
#include <vector>

namespace heapprofd {

int RunJavaVerb(const std::vector<std::string>& arguments);

}  // namespace heapprofd
