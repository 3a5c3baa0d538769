// Says of a file that cannot be read what it is, and the command that makes of it one that
// can be read, or shows it.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace heapprofd {

// `head`: the (decompressed) first bytes, kFormatHead of them where there are as many.
Status UnknownFormat(const std::string& name, std::string_view head);

}  // namespace heapprofd
