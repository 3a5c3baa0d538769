#include "client/preload/real_functions.h"

#include <cstdint>
#include <cstring>

#include "client/loaded_objects.h"
#include "client/preload/allocator_report.h"
#include "client/session.h"

namespace heapprofd {

namespace {

void FreeBeforeStart(void* pointer) {
  EnterSession();
  g_real.free(pointer);
}

}  // namespace

constinit RealFunctions g_real = {.free = FreeBeforeStart};

namespace {

struct Definition {
  void* address = nullptr;
  const link_map* object = nullptr;
};

Definition FindNext(const char* name) {
  const link_map* map = ObjectAt(_DYNAMIC);
  for (map = map != nullptr ? map->l_next : nullptr; map != nullptr; map = map->l_next) {
    if (void* address = FindFunction(*map, name))
      return {.address = address, .object = map};
  }
  return {};
}

// Functions that an allocator may lack: what they mean in terms of those it must have.
void FreeSized(void* pointer, size_t) {
  g_real.free(pointer);
}

void FreeAlignedSized(void* pointer, size_t, size_t) {
  g_real.free(pointer);
}

void Delete(void* pointer, size_t, size_t) {
  g_real.free(pointer);
}

// operator new before any C++ library is loaded (a C program that loads C++ plugins): the
// same blocks that libstdc++ would hand out, since its operator new is malloc and its
// operator delete is free. Only when memory runs out is the real one looked up, for its
// new_handler and its exception.
template <const char* kName>
void* New(size_t size, size_t a, size_t b) {
  if (void* pointer = g_real.malloc(size != 0 ? size : 1))
    return pointer;
  auto* real = reinterpret_cast<NewFunction>(FindNext(kName).address);
  return real != nullptr ? real(size, a, b) : nullptr;
}

template <const char* kName>
void* NewAligned(size_t size, size_t alignment, size_t b) {
  void* pointer = nullptr;
  const size_t at_least = alignment < sizeof(void*) ? sizeof(void*) : alignment;
  if (g_real.posix_memalign(&pointer, at_least, size != 0 ? size : 1) == 0)
    return pointer;
  auto* real = reinterpret_cast<NewFunction>(FindNext(kName).address);
  return real != nullptr ? real(size, alignment, b) : nullptr;
}

#define HPD_NAME(field, name, ...) constexpr char kName_##field[] = #name;
HPD_OPERATOR_NEW_LIST(HPD_NAME)
#undef HPD_NAME

void UseFallbackNew() {
  g_real.new_plain = New<kName_new_plain>;
  g_real.new_array = New<kName_new_array>;
  g_real.new_nothrow = New<kName_new_nothrow>;
  g_real.new_array_nothrow = New<kName_new_array_nothrow>;
  g_real.new_aligned = NewAligned<kName_new_aligned>;
  g_real.new_array_aligned = NewAligned<kName_new_array_aligned>;
  g_real.new_aligned_nothrow = NewAligned<kName_new_aligned_nothrow>;
  g_real.new_array_aligned_nothrow = NewAligned<kName_new_array_aligned_nothrow>;
#define HPD_DELETE(field, name) g_real.field = Delete;
  HPD_OPERATOR_DELETE_LIST(HPD_DELETE)
#undef HPD_DELETE
}

// jemalloc's interface by means of the standard one, as jemalloc documents it.
constexpr int kLgAlignMask = 63;  // log2 of the alignment
constexpr int kZeroFlag = 64;
constexpr int kLgMallocAlign = 4;

void* Mallocx(size_t size, int flags) {
  const int lg_align = flags & kLgAlignMask;
  if (lg_align <= kLgMallocAlign)
    return (flags & kZeroFlag) != 0 ? g_real.calloc(1, size) : g_real.malloc(size);
  void* block = nullptr;
  if (g_real.posix_memalign(&block, size_t{1} << lg_align, size) != 0)
    return nullptr;
  if ((flags & kZeroFlag) != 0)
    memset(block, 0, size);
  return block;
}

size_t Sallocx(const void* block, int) {
  return g_real.malloc_usable_size(const_cast<void*>(block));
}

void* Rallocx(void* old, size_t size, int flags) {
  const size_t before = Sallocx(old, flags);
  if ((flags & kLgAlignMask) <= kLgMallocAlign && (flags & kZeroFlag) == 0)
    return g_real.realloc(old, size);
  void* block = Mallocx(size, flags);
  if (block == nullptr)
    return nullptr;
  memcpy(block, old, before < size ? before : size);
  g_real.free(old);
  return block;
}

size_t Xallocx(void* block, size_t, size_t, int flags) {
  return Sallocx(block, flags);
}

void Dallocx(void* block, int) {
  g_real.free(block);
}

void Sdallocx(void* block, size_t, int) {
  g_real.free(block);
}

size_t Nallocx(size_t size, int) {
  return size;
}

void UseFallbackJemalloc() {
  g_real.mallocx = Mallocx;
  g_real.rallocx = Rallocx;
  g_real.xallocx = Xallocx;
  g_real.sallocx = Sallocx;
  g_real.dallocx = Dallocx;
  g_real.sdallocx = Sdallocx;
  g_real.nallocx = Nallocx;
}

bool IsLibstdcxx(const link_map& object) {
  const char* name = object.l_name;
  for (const char* at = name; *at != 0; ++at) {
    if (*at == '/')
      name = at + 1;
  }
  constexpr char kName[] = "libstdc++.so.";
  size_t i = 0;
  while (i + 1 < sizeof(kName) && name[i] == kName[i])
    ++i;
  return i + 1 == sizeof(kName);
}

// libstdc++'s operators are malloc and free: taking the short way to the same blocks
// saves a hop per call.
bool IsMallocInDisguise(const Definition& definition) {
  return definition.object == nullptr || IsLibstdcxx(*definition.object);
}

void ResolveOperators(const link_map* allocator) {
  const Definition plain = FindNext("_Znwm");
  UseFallbackNew();
  g_real.record_new = plain.object == allocator || IsMallocInDisguise(plain);
#define HPD_RESOLVE(field, name, ...)                                                  \
  if (const Definition found = FindNext(#name);                                        \
      !IsMallocInDisguise(found) && (!g_real.record_new || found.object == allocator)) \
    g_real.field = reinterpret_cast<decltype(g_real.field)>(found.address);
  HPD_OPERATOR_NEW_LIST(HPD_RESOLVE)
  HPD_OPERATOR_DELETE_LIST(HPD_RESOLVE)
#undef HPD_RESOLVE
}

}  // namespace

RealDefinition FindRealFunction(const char* name) {
  const Definition found = FindNext(name);
  return {.address = found.address, .object = found.object};
}

void* FindLateFunction(const char* name) {
  EnterSession();
  return FindNext(name).address;
}

#define HPD_RESOLVE(field) \
  g_real.field = reinterpret_cast<decltype(g_real.field)>(FindNext(#field).address)

namespace {

// All of jemalloc's functions are its own, or all are ours but nallocx, which tcmalloc
// has too.
void ResolveJemalloc() {
  if (FindNext("mallocx").address == nullptr) {
    UseFallbackJemalloc();
    if (FindNext("nallocx").address != nullptr)
      HPD_RESOLVE(nallocx);
    return;
  }
  HPD_RESOLVE(mallocx);
  HPD_RESOLVE(rallocx);
  HPD_RESOLVE(xallocx);
  HPD_RESOLVE(sallocx);
  HPD_RESOLVE(dallocx);
  HPD_RESOLVE(sdallocx);
  HPD_RESOLVE(nallocx);
}

}  // namespace

bool ResolveRealFunctions() {
  const Definition allocator = FindNext("malloc");
  if (allocator.address == nullptr)
    return false;
  HPD_RESOLVE(malloc);
  HPD_RESOLVE(calloc);
  HPD_RESOLVE(realloc);
  HPD_RESOLVE(reallocarray);
  HPD_RESOLVE(free);
  HPD_RESOLVE(free_sized);
  HPD_RESOLVE(free_aligned_sized);
  HPD_RESOLVE(posix_memalign);
  HPD_RESOLVE(aligned_alloc);
  HPD_RESOLVE(memalign);
  HPD_RESOLVE(valloc);
  HPD_RESOLVE(pvalloc);
  HPD_RESOLVE(malloc_usable_size);
  ResolveJemalloc();
  HPD_RESOLVE(dlopen);
  HPD_RESOLVE(dlmopen);
  HPD_RESOLVE(dlclose);
  HPD_RESOLVE(execve);
  HPD_RESOLVE(execvpe);
  HPD_RESOLVE(mlockall);
  HPD_RESOLVE(prctl);
  HPD_RESOLVE(syscall);
  HPD_RESOLVE(posix_spawn);
  HPD_RESOLVE(posix_spawnp);
#undef HPD_RESOLVE
  if (g_real.free_sized == nullptr)
    g_real.free_sized = FreeSized;
  if (g_real.free_aligned_sized == nullptr)
    g_real.free_aligned_sized = FreeAlignedSized;
  ResolveOperators(allocator.object);
  ResolveAllocatorStatistics();
  return g_real.calloc != nullptr && g_real.realloc != nullptr && g_real.free != nullptr;
}

}  // namespace heapprofd
