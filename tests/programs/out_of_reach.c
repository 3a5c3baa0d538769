// Keeps 100 blocks of 1000 bytes, goes where no profiler can be asked, and then forks a child
// that keeps as many, or runs a program there. Ends as the child does. The argument says
// where:
//   files:                  no further file may be opened
//   folder FOLDER:          a chroot
//   folder FOLDER PROGRAM:  the same; the child becomes PROGRAM
//   orphan FOLDER:          a chroot, where the child alone goes when its parent has ended. Both
//                           keep 1,000,000 bytes instead, and the child one more before
#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kLarge = 1000000 };

static void keep_block(size_t size) {
  void* volatile block = calloc(1, size);
  (void)block;
}

static void keep_blocks(void) {
  for (int i = 0; i < 100; ++i)
    keep_block(1000);
}

static int go_into(const char* folder) {
  return chroot(folder) == 0 && chdir("/") == 0;
}

static int be_orphaned_in(const char* folder) {
  int life[2];  // of the parent, as long as it can be written to
  int begun[2];
  char byte = 0;
  if (pipe(life) != 0 || pipe(begun) != 0)
    return 6;
  const pid_t child = fork();
  if (child != 0)
    return child > 0 && read(begun[0], &byte, 1) == 1 ? 0 : 7;
  close(life[1]);
  keep_block(1);  // from here on it counts in its parent's memory
  if (write(begun[1], &byte, 1) != 1 || read(life[0], &byte, 1) != 0 || !go_into(folder))
    return 8;
  keep_block(kLarge);
  return 0;
}

int main(int argc, char** argv) {
  if (argc > 2 && strcmp(argv[1], "orphan") == 0) {
    keep_block(kLarge);
    return be_orphaned_in(argv[2]);
  }
  keep_blocks();
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
