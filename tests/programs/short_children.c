// Processes whose allocations can be counted on: at first blocks of 8 bytes by this one,
// then children, one after the other, that each allocate blocks of 8 bytes.
//   short_children WAY CHILDREN CALLS
// WAY: fork (they end by _exit), killed (by SIGKILL), threads (of which a second thread
// allocates half of the blocks), vfork or spawn (they execute this program, which then
// allocates), again (a child's child allocates), together (they all live until the last
// one has allocated).
// Prints "ready" and waits for standard input to end, if it is a pipe, before it begins.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kOwnBlocks = 7, kBlockSize = 8 };

extern char** environ;

static long g_calls;
static int g_go[2];

__attribute__((noinline)) static void allocate(long calls) {
  for (long i = 0; i < calls; ++i) {
    void* volatile block = malloc(kBlockSize);
    free(block);
  }
}

static void* allocate_half(void* unused) {
  allocate(g_calls / 2);
  return unused;
}

static void wait_for(pid_t pid, int wanted) {
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || status != wanted)
    exit(1);
}

static void be_child(const char* way) {
  if (strcmp(way, "again") == 0) {
    const pid_t pid = fork();
    if (pid == 0)
      be_child("fork");
    wait_for(pid, 0);
    _exit(0);
  }
  if (strcmp(way, "threads") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, allocate_half, NULL);
    pthread_join(thread, NULL);
    allocate(g_calls - g_calls / 2);
  } else {
    allocate(g_calls);
  }
  if (strcmp(way, "killed") == 0)
    kill(getpid(), SIGKILL);
  char byte = 0;
  if (strcmp(way, "together") == 0 && read(g_go[0], &byte, 1) < 0)
    _exit(1);
  _exit(0);
}

static pid_t begin(const char* way, char** argv) {
  char* arguments[] = {argv[0], "exec", "0", argv[3], NULL};
  pid_t pid = 0;
  if (strcmp(way, "spawn") == 0)
    return posix_spawn(&pid, argv[0], NULL, NULL, arguments, environ) == 0 ? pid : -1;
  if (strcmp(way, "vfork") == 0) {
    pid = vfork();
    if (pid == 0) {
      execv(argv[0], arguments);
      _exit(1);
    }
    return pid;
  }
  pid = fork();
  if (pid == 0) {
    close(g_go[1]);
    be_child(way);
  }
  return pid;
}

static void wait_for_input(void) {
  struct stat input;
  if (fstat(0, &input) != 0 || !S_ISFIFO(input.st_mode))
    return;
  char byte = 0;
  if (write(1, "ready\n", 6) != 6)
    exit(1);
  while (read(0, &byte, 1) > 0) {
  }
}

int main(int argc, char** argv) {
  if (argc != 4)
    return 2;
  const char* way = argv[1];
  const long children = atol(argv[2]);
  g_calls = atol(argv[3]);
  if (strcmp(way, "exec") == 0) {
    allocate(g_calls);
    return 0;
  }
  wait_for_input();
  allocate(kOwnBlocks);
  const int is_together = strcmp(way, "together") == 0;
  if (pipe(g_go) != 0)
    return 1;
  for (long i = 0; i < children; ++i) {
    const pid_t pid = begin(way, argv);
    if (!is_together)
      wait_for(pid, strcmp(way, "killed") == 0 ? SIGKILL : 0);
  }
  close(g_go[1]);
  for (long i = 0; is_together && i < children; ++i)
    wait(NULL);
  return 0;
}
