#include "cli/record/own_limits.h"

#include <signal.h>
#include <sys/resource.h>

#include <optional>

namespace heapprofd {
namespace {

// As they were; none: not lifted. They belong to the process, as the limits do.
std::optional<rlimit> g_open_files;

struct sigaction g_on_too_large_file {};

}  // namespace

void LiftOwnLimits() {
  rlimit limit{};
  if (g_open_files || getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return;
  g_open_files = limit;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);

  struct sigaction ignore {};

  ignore.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignore, &g_on_too_large_file);
}

void RestoreLimits() {
  if (!g_open_files)
    return;
  setrlimit(RLIMIT_NOFILE, &*g_open_files);
  sigaction(SIGXFSZ, &g_on_too_large_file, nullptr);
}

}  // namespace heapprofd
