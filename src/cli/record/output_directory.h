// The directory that a recording's files go to.
#pragma once

#include <string>

#include "base/status.h"

namespace heapprofd {

// `requested` is created when missing and must be empty; "" makes a fresh directory under
// $TMPDIR or /tmp and points the link heap_profile-latest beside it to it, for root only
// where no other user could. Only its owner may enter. Root uses no directory that others
// may change.
Result<std::string> CreateOutputDirectory(const std::string& requested);

// The same for the results of a conversion: `requested` may hold files, and there is no
// link.
Result<std::string> UseOutputDirectory(const std::string& requested);

}  // namespace heapprofd
