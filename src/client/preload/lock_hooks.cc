// mlockall, interposed by LD_PRELOAD: it locks whatever is mapped, and what is mapped by
// this library is none of the program's.
#include <sys/mman.h>

#include "client/confinement.h"
#include "client/preload/real_functions.h"
#include "client/session.h"
#include "client/spare_memory.h"
#include "rt/compiler.h"

using heapprofd::g_real;

HPD_EXPORT int mlockall(int flags) {
  if (HPD_UNLIKELY(g_real.mlockall == nullptr))
    heapprofd::EnterSession();  // which resolves it
  const int result = g_real.mlockall(flags);
  if (result == 0 && (flags & MCL_CURRENT) != 0 && !heapprofd::IsConfined())
    heapprofd::UnlockOwnMemory();
  return result;
}
