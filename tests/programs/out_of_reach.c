// Keeps 100 blocks of 1000 bytes, goes where no profiler can be asked, and then forks a child
// that keeps as many, or runs a program there. Ends as the child does. The argument says
// where:
//   files:                  no further file may be opened
//   folder FOLDER:          a chroot
//   folder FOLDER PROGRAM:  the same; the child becomes PROGRAM
//   orphan FOLDER:          a chroot, where the child alone goes when its parent has ended
#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void keep_blocks(void) {
  for (int i = 0; i < 100; ++i) {
    void* volatile block = calloc(1, 1000);
    (void)block;
  }
}

static int go_into(const char* folder) {
  return chroot(folder) == 0 && chdir("/") == 0;
}

static int be_orphaned_in(const char* folder) {
  int life[2];
  if (pipe(life) != 0)
    return 6;
  const pid_t child = fork();
  if (child != 0)
    return child < 0 ? 7 : 0;
  char none;
  close(life[1]);
  if (read(life[0], &none, 1) != 0 || !go_into(folder))
    return 8;
  keep_blocks();
  return 0;
}

int main(int argc, char** argv) {
  keep_blocks();
  if (argc > 2 && strcmp(argv[1], "orphan") == 0)
    return be_orphaned_in(argv[2]);
  if (argc > 2) {
    if (!go_into(argv[2]))
      return 2;
  } else {
    const struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0)
      return 3;
  }
  const pid_t child = fork();
  if (child == 0) {
    if (argc > 3) {
      execl("/missing", "missing", (char*)0);  // is nothing that went unrecorded
      execl(argv[3], argv[3], (char*)0);
      _exit(4);
    }
    keep_blocks();
    _exit(0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
             ? WEXITSTATUS(status)
             : 5;
}
