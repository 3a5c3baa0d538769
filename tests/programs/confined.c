// Installs a seccomp filter that kills for every system call by which a process could
// report to a profiler or wait for it, and then keeps 100 blocks of 1000 bytes
// (`confined_block`). The argument says in which order:
//   prctl, syscall: in this process, by that function
//   child:          in a forked child that has not allocated yet
//   parent:         here, and then forks a child that allocates
//   exec:           in a forked child, which then becomes this program ("leaf")
//   spawn:          here, and then starts this program ("leaf")
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

#define KILL(number)                                   \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    KILL(SYS_socket),
    KILL(SYS_connect),
    KILL(SYS_sendto),
    KILL(SYS_recvmsg),
    KILL(SYS_setsockopt),
    KILL(SYS_getsockopt),
    KILL(SYS_nanosleep),
    KILL(SYS_sched_yield),
    KILL(SYS_getpid),
    KILL(SYS_gettid),
    KILL(SYS_clock_gettime),
    KILL(SYS_madvise),
    KILL(SYS_futex),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

__attribute__((noinline)) void* confined_block(void) {
  void* volatile block = calloc(1, 1000);
  return block;
}

static void confine(int by_syscall) {
  struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]),
                               .filter = filter};
  // A call that fails changes nothing.
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) != -1)
    exit(3);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      (by_syscall ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
                  : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) != 0)
    exit(4);
}

static int keep_blocks(void) {
  for (int i = 0; i < 100; ++i) {
    void* volatile keep = confined_block();
    (void)keep;
  }
  return 0;
}

static int wait_for(pid_t pid) {
  int status = 0;
  return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 5;
}

int main(int argc, char** argv) {
  const char* way = argc > 1 ? argv[1] : "prctl";
  char* leaf[] = {argv[0], "leaf", NULL};
  pid_t pid = 0;
  if (strcmp(way, "leaf") == 0)
    return keep_blocks();
  if (strcmp(way, "child") == 0 || strcmp(way, "exec") == 0) {
    pid = fork();
    if (pid != 0)
      return wait_for(pid);
    confine(0);
    if (strcmp(way, "child") == 0)
      return keep_blocks();
    execv(argv[0], leaf);
    return 6;
  }
  confine(strcmp(way, "syscall") == 0);
  if (strcmp(way, "parent") == 0) {
    pid = fork();
    return pid == 0 ? keep_blocks() : wait_for(pid);
  }
  if (strcmp(way, "spawn") == 0)
    return posix_spawn(&pid, argv[0], NULL, NULL, leaf, environ) != 0 ? 7 : wait_for(pid);
  return keep_blocks();
}
