// The exec and posix_spawn families, interposed by LD_PRELOAD: the engine is told what a
// process is about to become, because a program that the library cannot be loaded into
// says nothing by itself. The call is passed on as it is.
//
// May run in a vfork child: nothing of the process is changed, only its stack is used.
#include <fcntl.h>
#include <time.h>

#include <cstdarg>
#include <cstdint>

#include "client/confinement.h"
#include "client/engine_link/handshake_client.h"
#include "client/preload/real_functions.h"
#include "client/session.h"
#include "rt/compiler.h"
#include "rt/syscall.h"
#include "wire/handshake.h"

// The C library's, and weak: before it is set up there is none.
extern "C" char** __environ __attribute__((weak));

namespace heapprofd {
namespace {

bool StartsWith(const char* text, const char* prefix) {
  while (*prefix != 0 && *text == *prefix) {
    ++text;
    ++prefix;
  }
  return *prefix == 0;
}

bool Contains(const char* text, const char* words) {
  for (; *text != 0; ++text) {
    if (StartsWith(text, words))
      return true;
  }
  return false;
}

bool KeepsSession(char* const* environment) {
  bool has_library = false;
  bool has_session = false;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    has_library |= StartsWith(*environment, "LD_PRELOAD=") &&
                   Contains(*environment, "libheapprofd_preload");
    has_session |= StartsWith(*environment, kSessionVariable);
  }
  return has_library && has_session;
}

// Whether programs that this process starts are the engine's business.
bool IsFollowed() {
  const SessionState state = g_session.state.load(std::memory_order_acquire);
  if (state == SessionState::kForkPending)
    return true;  // the session that its parent had may be over
  return state == SessionState::kActive &&
         g_session.engine()->control.active.load(std::memory_order_relaxed) != 0;
}

// A path that is not there or cannot be executed: whoever tries one after the other would
// only make noise.
bool IsHopeless(const char* program) {
  return Contains(program, "/") &&
         rt::IsError(rt::Syscall(SYS_faccessat, AT_FDCWD, rt::ToArg(program), 1));
}

class ExecAttempt {
 public:
  ExecAttempt(const char* program, char* const* environment) {
    if (program == nullptr || !IsFollowed())
      return;
    if (IsConfined()) {
      if (g_session.only_pid == 0 &&
          g_session.state.load(std::memory_order_acquire) !=
              SessionState::kForkPending)  // those count by themselves
        CountAs(&RingHeader::confined_children);
      return;
    }
    if ((g_session.only_pid != 0 &&
         g_session.only_pid != static_cast<int>(rt::Syscall(SYS_getpid))) ||
        IsHopeless(program))
      return;
    timespec now{};
    rt::Syscall(SYS_clock_gettime, CLOCK_MONOTONIC, rt::ToArg(&now));
    notice_.magic = kExecNoticeMagic;
    notice_.version = kWireVersion;
    notice_.time_ns = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u +
                      static_cast<uint64_t>(now.tv_nsec);
    notice_.pid = kExecOfSender;
    notice_.keeps_session = KeepsSession(environment) ? 1 : 0;
    for (size_t i = 0; i + 1 < sizeof(notice_.program) && program[i] != 0; ++i)
      notice_.program[i] = program[i];
    is_followed_ = true;
  }

  void Announce() {
    // What had no descriptor for a socket may have one as the next program.
    if (Send(ExecOutcome::kAttempt) == ConnectResult::kUnreached &&
        !g_session.is_out_of_reach.load(std::memory_order_relaxed))  // counted already
      CountAs(&RingHeader::unreached_children);
  }

  // For a child of this process, once it is there.
  void AnnounceFor(int pid) {
    notice_.pid = pid;
    Announce();
  }

  // An exec came back.
  int Failed(int result) const {
    Send(ExecOutcome::kFailed);
    if (counted_as_ != nullptr)
      CountUnprofiled(counted_as_, -1);
    return result;
  }

 private:
  ConnectResult Send(ExecOutcome outcome) const {
    if (!is_followed_)
      return ConnectResult::kFailed;
    ExecNotice notice = notice_;
    notice.outcome = outcome;
    return SendExecNotice(g_session, notice);
  }

  // As one that cannot be profiled.
  void CountAs(std::atomic<uint32_t> RingHeader::*counter) {
    counted_as_ = counter;
    CountUnprofiled(counter, 1);
  }

  ExecNotice notice_{};
  bool is_followed_ = false;
  std::atomic<uint32_t> RingHeader::*counted_as_ = nullptr;
};

HPD_COLD void EnsureResolved() {
  if (g_real.execve == nullptr)
    EnterSession();
}

char* const* Environment() {
  return &__environ != nullptr ? __environ : nullptr;
}

size_t CountEntries(char* const* environment) {
  size_t count = 0;
  while (environment != nullptr && environment[count] != nullptr)
    ++count;
  return count;
}

// In a confined process: the environment with an empty session variable, in `copy`, which
// has room for two entries more. The program may load this library, whose system calls
// could be its end.
char* const* ForbidProfiling(char* const* environment, char** copy) {
  static char empty_variable[] = "HEAPPROFD_SESSION=";
  size_t count = 0;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    if (!StartsWith(*environment, empty_variable))
      copy[count++] = *environment;
  }
  copy[count++] = empty_variable;
  copy[count] = nullptr;
  return copy;
}

// `real` starts the program and writes the child's process id to where its argument
// points.
template <typename Real>
int Spawn(int* pid, const char* program, char* const* environment, Real&& real) {
  ExecAttempt attempt(program, environment);
  int child = 0;
  const int error = real(&child);
  if (error != 0)
    return attempt.Failed(error);
  attempt.AnnounceFor(child);
  if (pid != nullptr)
    *pid = child;
  return 0;
}

size_t CountArguments(const char* first, va_list* list) {
  size_t count = 0;
  for (const char* at = first; at != nullptr; at = va_arg(*list, const char*))
    ++count;
  return count;
}

// The arguments of an execl call, from its list; `array` has room for their count and the
// nullptr behind them.
void CopyArguments(const char* first, va_list* list, char** array) {
  for (const char* at = first; at != nullptr; at = va_arg(*list, const char*))
    *array++ = const_cast<char*>(at);
  *array = nullptr;
}

}  // namespace
}  // namespace heapprofd

using heapprofd::ExecAttempt;
using heapprofd::g_real;

// HPD_COLLECT(first): `arguments` holds the variable arguments behind `first`; `list`
// stands behind them. On the stack: the caller may be a vfork child.
#define HPD_COLLECT(first)                                                               \
  va_list list;                                                                          \
  va_start(list, first);                                                                 \
  const size_t count = heapprofd::CountArguments(first, &list);                          \
  va_end(list);                                                                          \
  auto** arguments = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*))); \
  va_start(list, first);                                                                 \
  heapprofd::CopyArguments(first, &list, arguments)

// HPD_PASS_ENVIRONMENT(environment): `passed` is what the program gets of it.
#define HPD_PASS_ENVIRONMENT(environment)                                              \
  char* const* passed = environment;                                                   \
  if (HPD_UNLIKELY(heapprofd::IsConfined())) {                                         \
    auto** copy = static_cast<char**>(                                                 \
        __builtin_alloca((heapprofd::CountEntries(environment) + 2) * sizeof(char*))); \
    passed = heapprofd::ForbidProfiling(environment, copy);                            \
  }

extern "C" {

HPD_EXPORT int execve(const char* program,
                      char* const* arguments,
                      char* const* environment) {
  heapprofd::EnsureResolved();
  ExecAttempt attempt(program, environment);
  attempt.Announce();
  HPD_PASS_ENVIRONMENT(environment);
  return attempt.Failed(g_real.execve(program, arguments, passed));
}

HPD_EXPORT int execvpe(const char* program,
                       char* const* arguments,
                       char* const* environment) {
  heapprofd::EnsureResolved();
  ExecAttempt attempt(program, environment);
  attempt.Announce();
  HPD_PASS_ENVIRONMENT(environment);
  return attempt.Failed(g_real.execvpe(program, arguments, passed));
}

HPD_EXPORT int execv(const char* program, char* const* arguments) {
  return execve(program, arguments, heapprofd::Environment());
}

HPD_EXPORT int execvp(const char* program, char* const* arguments) {
  return execvpe(program, arguments, heapprofd::Environment());
}

HPD_EXPORT int execl(const char* program, const char* first, ...) {
  HPD_COLLECT(first);
  va_end(list);
  return execv(program, arguments);
}

HPD_EXPORT int execlp(const char* program, const char* first, ...) {
  HPD_COLLECT(first);
  va_end(list);
  return execvp(program, arguments);
}

HPD_EXPORT int execle(const char* program, const char* first, ...) {
  HPD_COLLECT(first);
  char* const* environment = va_arg(list, char* const*);
  va_end(list);
  return execve(program, arguments, environment);
}

// NOLINTNEXTLINE(readability-function-size)
HPD_EXPORT int posix_spawn(int* pid,
                           const char* program,
                           const void* actions,
                           const void* attributes,
                           char* const* arguments,
                           char* const* environment) {
  heapprofd::EnsureResolved();
  HPD_PASS_ENVIRONMENT(environment);
  return heapprofd::Spawn(pid, program, environment, [&](int* child) {
    return g_real.posix_spawn(child, program, actions, attributes, arguments, passed);
  });
}

// NOLINTNEXTLINE(readability-function-size)
HPD_EXPORT int posix_spawnp(int* pid,
                            const char* program,
                            const void* actions,
                            const void* attributes,
                            char* const* arguments,
                            char* const* environment) {
  heapprofd::EnsureResolved();
  HPD_PASS_ENVIRONMENT(environment);
  return heapprofd::Spawn(pid, program, environment, [&](int* child) {
    return g_real.posix_spawnp(child, program, actions, attributes, arguments, passed);
  });
}

}  // extern "C"
