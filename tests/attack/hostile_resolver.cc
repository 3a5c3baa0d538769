// A program that makes a directory before main, in the loader: by a system call of its own
// in the function that decides which of several others is used (an ifunc).
#include <sys/syscall.h>

#include <cstdlib>

namespace {

constexpr char kDirectory[] = "/tmp/made_by_resolver";

int One() {
  return 1;
}

}  // namespace

extern "C" {

using Function = int (*)();

__attribute__((visibility("hidden"))) Function HostileResolve() {
#if defined(__x86_64__)
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(SYS_mkdir), "D"(kDirectory), "S"(0700)
               : "rcx", "r11", "memory");
#else
  register long x8 asm("x8") = SYS_mkdirat;
  register long x0 asm("x0") = -100;  // AT_FDCWD
  register long x1 asm("x1") = reinterpret_cast<long>(kDirectory);
  register long x2 asm("x2") = 0700;
  asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
#endif
  return One;
}

int Resolved() __attribute__((ifunc("HostileResolve")));
}

int main() {
  for (int i = 0; i < 1000; ++i)
    free(malloc(1000));
  return Resolved() - 1;
}
