// Colours of a terminal, for what the eye should find first.
#pragma once

#include <string>

namespace heapprofd {

// Whether `fd` is a terminal that shows colours and nobody has forbidden them (NO_COLOR,
// see no-color.org).
bool ShowsColor(int fd);

// The summary with its headline and the heads of its tables bold, and its warnings'
// marks yellow.
std::string WithColor(const std::string& summary);

}  // namespace heapprofd
