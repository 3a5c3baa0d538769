// For tests of what is said when the system gives nothing more.
#pragma once

#include <sys/resource.h>

namespace heapprofd {

// The runtimes of sanitizers need descriptors of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kMayRunOutOfDescriptors = false;
#else
inline constexpr bool kMayRunOutOfDescriptors = true;
#endif

// While it lives, this process may have no more than `value` of `resource`; with
// RLIMIT_NOFILE and 0, whatever needs a new descriptor fails.
class ScopedLimit {
 public:
  ScopedLimit(int resource, rlim_t value) : resource_(resource) {
    getrlimit(static_cast<__rlimit_resource_t>(resource_), &before_);
    const rlimit now{.rlim_cur = value, .rlim_max = before_.rlim_max};
    setrlimit(static_cast<__rlimit_resource_t>(resource_), &now);
  }

  ScopedLimit(const ScopedLimit&) = delete;
  ScopedLimit& operator=(const ScopedLimit&) = delete;

  ~ScopedLimit() { setrlimit(static_cast<__rlimit_resource_t>(resource_), &before_); }

 private:
  int resource_;
  rlimit before_{};
};

}  // namespace heapprofd
