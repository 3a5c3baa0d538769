// When it is told to (a line of input), loads LIBRARY, calls its run() 300 times, and is
// killed at once. Usage: late_load LIBRARY
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc != 2)
    return 2;
  puts("ready");
  fflush(stdout);
  getchar();
  void* handle = dlopen(argv[1], RTLD_NOW);
  if (handle == NULL)
    return 1;
  void* (*run)(void) = (void* (*)(void))dlsym(handle, "run");
  for (int i = 0; i < 300; ++i)
    run();
  raise(SIGKILL);
  return 3;
}
