// Which calls they are, by the names that the architecture has.
#include "attach/thread/interrupted_call.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>

namespace heapprofd {

bool EndsWithEintr(int64_t number) {
  constexpr std::array kCalls = {
#ifdef SYS_epoll_wait
      SYS_epoll_wait,
#endif
      SYS_epoll_pwait,   SYS_epoll_pwait2,   SYS_rt_sigtimedwait,
      SYS_semop,         SYS_semtimedop,     SYS_io_getevents,
      SYS_io_pgetevents, SYS_accept,         SYS_accept4,
      SYS_connect,       SYS_recvfrom,       SYS_recvmsg,
      SYS_recvmmsg,      SYS_sendto,         SYS_sendmsg,
      SYS_sendmmsg,      SYS_sendfile,       SYS_splice,
      SYS_read,          SYS_readv,          SYS_write,
      SYS_writev,        SYS_io_uring_enter, SYS_fallocate};
  return std::find(kCalls.begin(), kCalls.end(), number) != kCalls.end();
}

bool WaitsForSignal(int64_t number) {
#ifdef SYS_pause
  return number == SYS_pause || number == SYS_rt_sigsuspend;
#else
  return number == SYS_ppoll || number == SYS_rt_sigsuspend;
#endif
}

}  // namespace heapprofd
