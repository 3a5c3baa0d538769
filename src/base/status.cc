#include "base/status.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace heapprofd {

namespace {

// What to do about an error that a limit of this process has caused.
const char* LimitBehind(int error_number) {
  rlimit limit{};
  if (error_number == EMFILE)
    return "; raise ulimit -n";
  if (error_number == EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
      limit.rlim_cur != RLIM_INFINITY)
    return "; raise ulimit -f";
  return "";
}

}  // namespace

Status Status::FromErrno(std::string_view what, int error_number) {
  return Status(StatusCode::kIo, std::string(what) + ": " + strerror(error_number) +
                                     LimitBehind(error_number));
}

Status Status::WithContext(std::string_view context) && {
  message_.insert(0, ": ").insert(0, context);
  return std::move(*this);
}

void CheckFailed(const char* condition, const char* file, int line) {
  fprintf(stderr, "%s:%d: internal error: %s is false\n", file, line, condition);
  abort();
}

}  // namespace heapprofd
