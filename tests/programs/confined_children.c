// When its standard input ends, forks children that allow themselves a few system calls
// only, none of them for waiting, and then allocate: one sooner after its first block,
// another later, so that some do it while they are attached to. Exits with the number of
// those that were killed for another one. With an argument: does so itself, allocates
// as often as it says and exits.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ALLOW(call)                                      \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void Confine(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ALLOW(brk),
      ALLOW(mmap),
      ALLOW(munmap),
      ALLOW(mprotect),
      ALLOW(madvise),
      ALLOW(getrandom),
      ALLOW(exit_group),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  const struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
    _exit(1);
}

static void Allocate(int count, size_t size) {
  for (int i = 0; i < count; ++i) {
    char* volatile block = malloc(size);
    *block = 1;
  }
}

static void SpinFor(long microseconds) {
  struct timespec begin;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 <
           microseconds);
}

int main(int argc, char** argv) {
  char byte;
  free(malloc(100));
  if (write(STDOUT_FILENO, "ready\n", 6) != 6)
    return 99;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  if (argc > 1) {
    Confine();
    Allocate(atoi(argv[1]), 50);
    exit(0);
  }
  int killed = 0;
  for (int i = 0; i < 500; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      free(malloc(100));
      SpinFor(20 * (i % 250));
      Confine();
      Allocate(100, 9000);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    killed += status != 0;
  }
  return killed < 99 ? killed : 99;
}
