// A parent with 1000 live blocks of 1000 bytes (`parent_block`) whose children come in
// every way: fork (the child allocates 500 blocks of 2000 bytes in `child_block`), vfork,
// clone(CLONE_VM), posix_spawn and exec.
#define _GNU_SOURCE
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

__attribute__((noinline)) void* parent_block(void) {
  void* volatile block = calloc(1, 1000);
  return block;
}

__attribute__((noinline)) void* child_block(void) {
  void* volatile block = calloc(1, 2000);
  return block;
}

__attribute__((noinline)) void* shared_block(void) {
  void* volatile block = calloc(1, 3000);
  return block;
}

static int in_shared_memory(void* unused) {
  (void)unused;
  for (int i = 0; i < 10; ++i) {
    void* volatile keep = shared_block();
    (void)keep;
  }
  return 0;
}

static void wait_for(pid_t pid) {
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, __WALL) != pid || status != 0)
    exit(1);
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "exec") == 0) {
    for (int i = 0; i < 100; ++i) {
      void* volatile keep = child_block();
      (void)keep;
    }
    return 0;
  }
  for (int i = 0; i < 500; ++i) {
    void* volatile keep = parent_block();
    (void)keep;
  }
  pid_t pid = fork();
  if (pid == 0) {
    for (int i = 0; i < 500; ++i) {
      void* volatile keep = child_block();
      (void)keep;
    }
    _exit(0);
  }
  wait_for(pid);
  pid = vfork();
  if (pid == 0) {
    in_shared_memory(NULL);
    _exit(0);
  }
  wait_for(pid);
  char* stack = malloc(1 << 16);
  wait_for(
      clone(in_shared_memory, stack + (1 << 16), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
  char* arguments[] = {argv[0], "exec", NULL};
  if (posix_spawn(&pid, argv[0], NULL, NULL, arguments, environ) != 0)
    return 1;
  wait_for(pid);
  pid = fork();
  if (pid == 0) {
    execv(argv[0], arguments);
    _exit(1);
  }
  wait_for(pid);
  for (int i = 0; i < 500; ++i) {
    void* volatile keep = parent_block();
    (void)keep;
  }
  puts("forker ok");
  return 0;
}
