// A heap dump as JSON for speedscope.app.
#pragma once

#include <string>

#include "export/view.h"
#include "profile/model.h"

namespace heapprofd {

// `title`: of the profile, for people.
std::string EncodeSpeedscope(const TargetProfile& profile,
                             const HeapDump& dump,
                             View view,
                             const std::string& title);

}  // namespace heapprofd
