// What a process is called in the summary.
#pragma once

#include <string>

#include "profile/model.h"

namespace heapprofd {

// The file name in argv[0], fit to be shown: "nginx" for /usr/sbin/nginx, and also for
// "nginx: master process /usr/sbin/nginx -c /etc/nginx.conf", which a server has written
// over its own.
std::string ProgramName(const TargetProfile& profile);

// "nginx (pid 4711)".
std::string ProcessName(const TargetProfile& profile);

}  // namespace heapprofd
