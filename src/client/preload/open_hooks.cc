// The dlopen family, interposed by LD_PRELOAD: libraries that are opened so that this
// library does not see what they allocate are counted, and closing one is noticed.
//
// Opening is passed on by a jump: the loader looks at its caller, for the caller's RUNPATH
// and namespace.
#include <dlfcn.h>

#include "client/preload/libc_symbols.h"
#include "client/preload/real_functions.h"
#include "client/recorder.h"
#include "client/session.h"
#include "rt/compiler.h"

using heapprofd::g_real;

namespace {

HPD_COLD HPD_NOINLINE void CountDeepOpen() {
  if (!heapprofd::IsLibcLedHere())
    heapprofd::CountUnseenOpen(&heapprofd::UnseenOpens::deepbind);
}

HPD_COLD HPD_NOINLINE void CountNamespaceOpen() {
  heapprofd::CountUnseenOpen(&heapprofd::UnseenOpens::namespaces);
}

}  // namespace

extern "C" {

HPD_EXPORT void* dlopen(const char* file, int mode) {
  heapprofd::EnsureFound(&g_real.dlopen, "dlopen");
  if (HPD_UNLIKELY((mode & RTLD_DEEPBIND) != 0))
    CountDeepOpen();
  return g_real.dlopen(file, mode);
}

HPD_EXPORT void* dlmopen(Lmid_t space, const char* file, int mode) {
  heapprofd::EnsureFound(&g_real.dlmopen, "dlmopen");
  if (HPD_UNLIKELY(space != LM_ID_BASE))
    CountNamespaceOpen();
  return g_real.dlmopen(space, file, mode);
}

// Unloading makes addresses reusable by other code: the rules learnt for them must not
// outlive it.
HPD_EXPORT int dlclose(void* handle) {
  heapprofd::EnsureFound(&g_real.dlclose, "dlclose");
  // What was sampled in this module must be looked up while it is still there.
  heapprofd::WaitUntilDrained();
  const int result = g_real.dlclose(handle);
  heapprofd::RecordModulesChanged();
  return result;
}

}  // extern "C"
