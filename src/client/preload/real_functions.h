// The functions that the program would have used without us: the next definition of each
// one behind this library in the loader's search order. Found by reading the
// loader's own lists, because the first hook runs before dlsym can be called safely.
#pragma once

#include <cstddef>

namespace heapprofd {

// Every operator new: X(field, mangled name, its AllocationFunction, whether an allocator
// may serve it by its interposed aligned_alloc), and every operator delete: X(field,
// mangled name).
#define HPD_OPERATOR_NEW_LIST(X)                                                       \
  X(new_plain, _Znwm, kNew, false)                                                     \
  X(new_array, _Znam, kNewArray, false)                                                \
  X(new_nothrow, _ZnwmRKSt9nothrow_t, kNewNothrow, false)                              \
  X(new_array_nothrow, _ZnamRKSt9nothrow_t, kNewArrayNothrow, false)                   \
  X(new_aligned, _ZnwmSt11align_val_t, kNewAligned, true)                              \
  X(new_array_aligned, _ZnamSt11align_val_t, kNewArrayAligned, true)                   \
  X(new_aligned_nothrow, _ZnwmSt11align_val_tRKSt9nothrow_t, kNewAlignedNothrow, true) \
  X(new_array_aligned_nothrow, _ZnamSt11align_val_tRKSt9nothrow_t,                     \
    kNewArrayAlignedNothrow, true)

#define HPD_OPERATOR_DELETE_LIST(X)                              \
  X(delete_plain, _ZdlPv)                                        \
  X(delete_array, _ZdaPv)                                        \
  X(delete_sized, _ZdlPvm)                                       \
  X(delete_array_sized, _ZdaPvm)                                 \
  X(delete_nothrow, _ZdlPvRKSt9nothrow_t)                        \
  X(delete_array_nothrow, _ZdaPvRKSt9nothrow_t)                  \
  X(delete_aligned, _ZdlPvSt11align_val_t)                       \
  X(delete_array_aligned, _ZdaPvSt11align_val_t)                 \
  X(delete_sized_aligned, _ZdlPvmSt11align_val_t)                \
  X(delete_array_sized_aligned, _ZdaPvmSt11align_val_t)          \
  X(delete_aligned_nothrow, _ZdlPvSt11align_val_tRKSt9nothrow_t) \
  X(delete_array_aligned_nothrow, _ZdaPvSt11align_val_tRKSt9nothrow_t)

// Pointer and size arguments of all of them fit three registers, so one signature serves
// each family.
using NewFunction = void* (*)(size_t, size_t, size_t);
using DeleteFunction = void (*)(void*, size_t, size_t);

// posix_spawn and posix_spawnp: process id, program, actions, attributes, arguments,
// environment.
using SpawnFunction =
    int (*)(int*, const char*, const void*, const void*, char* const*, char* const*);

struct RealFunctions {
  void* (*malloc)(size_t) = nullptr;
  void* (*calloc)(size_t, size_t) = nullptr;
  void* (*realloc)(void*, size_t) = nullptr;
  void* (*reallocarray)(void*, size_t, size_t) = nullptr;
  void (*free)(void*) = nullptr;
  void (*free_sized)(void*, size_t) = nullptr;
  void (*free_aligned_sized)(void*, size_t, size_t) = nullptr;
  int (*posix_memalign)(void**, size_t, size_t) = nullptr;
  void* (*aligned_alloc)(size_t, size_t) = nullptr;
  void* (*memalign)(size_t, size_t) = nullptr;
  void* (*valloc)(size_t) = nullptr;
  void* (*pvalloc)(size_t) = nullptr;
  size_t (*malloc_usable_size)(void*) = nullptr;
  // jemalloc's; never nullptr once resolved.
  void* (*mallocx)(size_t, int) = nullptr;
  void* (*rallocx)(void*, size_t, int) = nullptr;
  size_t (*xallocx)(void*, size_t, size_t, int) = nullptr;
  size_t (*sallocx)(const void*, int) = nullptr;
  void (*dallocx)(void*, int) = nullptr;
  void (*sdallocx)(void*, size_t, int) = nullptr;
  size_t (*nallocx)(size_t, int) = nullptr;
  // nullptr before a library that has them is loaded: see EnsureFound.
  void* (*dlopen)(const char*, int) = nullptr;
  void* (*dlmopen)(long, const char*, int) = nullptr;
  int (*dlclose)(void*) = nullptr;
  int (*execve)(const char*, char* const*, char* const*) = nullptr;
  int (*execvpe)(const char*, char* const*, char* const*) = nullptr;
  int (*mlockall)(int) = nullptr;
  int (*prctl)(int, long, long, long, long) = nullptr;
  long (*syscall)(long, long, long, long, long, long, long) = nullptr;
  SpawnFunction posix_spawn = nullptr;
  SpawnFunction posix_spawnp = nullptr;
#define HPD_FIELD(field, ...) NewFunction field = nullptr;
  HPD_OPERATOR_NEW_LIST(HPD_FIELD)
#undef HPD_FIELD
#define HPD_FIELD(field, name) DeleteFunction field = nullptr;
  HPD_OPERATOR_DELETE_LIST(HPD_FIELD)
#undef HPD_FIELD
  // The operators above do not reach malloc through us, so the hook must record: they are
  // the allocator's own, or stand for libstdc++'s. Otherwise the hook only passes on, and
  // malloc's hook records.
  bool record_new = false;
};

extern RealFunctions g_real;

struct RealDefinition {
  void* address = nullptr;       // nullptr: nobody behind this library defines it
  const void* object = nullptr;  // tells definitions of one library from those of others
};

RealDefinition FindRealFunction(const char* name);

// The same at any time: g_real may not have been filled yet.
void* FindLateFunction(const char* name);

// Before a function is called that an older glibc has in a library of its own, which may
// have been loaded since g_real was filled.
template <typename Function>
inline void EnsureFound(Function** function, const char* name) {
  if (__builtin_expect(*function == nullptr, 0))
    *function = reinterpret_cast<Function*>(FindLateFunction(name));
}

// Fills g_real; false when this library is not in the loader's list or no malloc follows
// it.
bool ResolveRealFunctions();

}  // namespace heapprofd
