// Preloaded into a service it makes it as large as H1 of the attacks once did: what takes
// time by the size of the process (a core dump) takes it. HEAPPROFD_BALLAST_MIB says how
// large.
#include <stdlib.h>

__attribute__((constructor)) static void take_ballast(void) {
  const char* mib = getenv("HEAPPROFD_BALLAST_MIB");
  const size_t size = (mib != NULL ? (size_t)atoi(mib) : 0) << 20;
  volatile char* ballast = malloc(size);
  for (size_t i = 0; ballast != NULL && i < size; i += 4096)
    ballast[i] = 1;  // pages of zeros would not be written to a core
}
