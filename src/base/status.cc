#include "base/status.h"

#include <cstdio>
#include <cstring>

namespace heapprofd {

Status Status::FromErrno(std::string_view what, int error_number) {
  return Status(StatusCode::kIo, std::string(what) + ": " + strerror(error_number));
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
