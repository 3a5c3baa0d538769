// heap_profile hprof: heap dumps of virtual machines, converted, merged and examined.
#pragma once

#include <string>
#include <vector>

namespace heapprofd {

int RunHprofVerb(const std::vector<std::string>& arguments);

// As Android's program of this name: exit codes too.
int RunHprofConv(const std::vector<std::string>& arguments);

}  // namespace heapprofd
