// Lookups that begin at libc and so never meet this library: those of libraries that are
// opened with RTLD_DEEPBIND, and dlsym() with a handle of libc. They find the hooks, too,
// once libc's own symbols lead to these (docs/design/deepbind.md).
#pragma once

namespace heapprofd {

// Makes the symbols of libc lead to this library's functions, which g_real leads on to
// libc's. False, and nothing is changed, when another library stands between, which may
// reach libc by such a lookup and would be counted twice. Once, when g_real is filled.
bool LeadLibcHere();

// Whether it has.
bool IsLibcLedHere();

}  // namespace heapprofd
