// `heap_profile android`: drives Perfetto on a device behind adb with the same options:
// start, wait, pull, convert.
#pragma once

#include "cli/record/options.h"

namespace heapprofd {

// What the device is asked for, as text: the options, and the packages' versions.
std::string DeviceConfigText(const Options& options);

// Gives the exit code. The adb that PATH finds does the talking.
int RunOnAndroid(const Options& options);

}  // namespace heapprofd
