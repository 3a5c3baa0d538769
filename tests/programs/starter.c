// starter PROGRAM ARGUMENT: runs PROGRAM once by every function that starts programs,
// half of them from a vfork child, with that argument, a second one "b c", and
// VARIABLE=value added to the environment where the function takes one. Prints each
// child's exit code.
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static const char* program;
static char* arguments[4];
static char* extended[1000];

static void become(int way) {
  switch (way) {
    case 0:
      execl(program, arguments[0], arguments[1], arguments[2], (char*)NULL);
      break;
    case 1:
      execlp(program, arguments[0], arguments[1], arguments[2], (char*)NULL);
      break;
    case 2:
      execle(program, arguments[0], arguments[1], arguments[2], (char*)NULL, extended);
      break;
    case 3:
      execv(program, arguments);
      break;
    case 4:
      execvp(program, arguments);
      break;
    case 5:
      execve(program, arguments, extended);
      break;
    case 6:
      execvpe(program, arguments, extended);
      break;
  }
  _exit(111);
}

static int start(int way) {
  pid_t pid = -1;
  if (way == 7) {
    if (posix_spawn(&pid, program, NULL, NULL, arguments, extended) != 0)
      return 112;
  } else if (way == 8) {
    if (posix_spawnp(&pid, program, NULL, NULL, arguments, extended) != 0)
      return 112;
  } else if (way % 2 == 0) {
    pid = vfork();
    if (pid == 0)
      become(way);
  } else {
    pid = fork();
    if (pid == 0)
      become(way);
  }
  int status = 0;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 113;
}

int main(int argc, char** argv) {
  if (argc != 3)
    return 2;
  program = argv[1];
  arguments[0] = "name";
  arguments[1] = argv[2];
  arguments[2] = "b c";
  size_t count = 0;
  for (; environ[count] != NULL && count < 998; ++count)
    extended[count] = environ[count];
  extended[count] = "VARIABLE=value";
  for (int way = 0; way < 9; ++way)
    printf("%d ", start(way));
  puts("");
  return 0;
}
