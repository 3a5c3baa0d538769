// Loads and unloads two libraries in turn, so that the code of one stands where the
// other's was: each allocates 300 blocks of 1500 bytes in plugin_a and plugin_b. Usage:
// dl PLUGIN_A PLUGIN_B
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc != 3)
    return 2;
  for (int round = 0; round < 60; ++round) {
    void* handle = dlopen(argv[1 + round % 2], RTLD_NOW);
    if (handle == NULL)
      return 1;
    void* (*run)(void) = (void* (*)(void))dlsym(handle, "run");
    for (int i = 0; i < 10; ++i)
      run();
    dlclose(handle);
  }
  puts("dl ok");
  return 0;
}
