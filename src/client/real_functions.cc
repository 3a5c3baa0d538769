#include "client/real_functions.h"

#include <elf.h>
#include <link.h>

#include <cstdint>

#include "client/allocator_report.h"
#include "client/session.h"

// The loader's description of itself: glibc's object (declared in <link.h>), or musl's
// pointer to it.
extern struct r_debug _r_debug __attribute__((weak));
extern "C" struct r_debug* _dl_debug_addr __attribute__((weak));

namespace heapprofd {

namespace {

void FreeBeforeStart(void* pointer) {
  EnterSession();
  g_real.free(pointer);
}

}  // namespace

constinit RealFunctions g_real = {.free = FreeBeforeStart};

namespace {

bool NamesEqual(const char* left, const char* right) {
  while (*left != 0 && *left == *right) {
    ++left;
    ++right;
  }
  return *left == *right;
}

uint32_t GnuHash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != 0; ++name)
    hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

uint32_t SysvHash(const char* name) {
  uint32_t hash = 0;
  for (; *name != 0; ++name) {
    hash = (hash << 4) + static_cast<unsigned char>(*name);
    hash ^= hash >> 24 & 0xf0;
    hash &= 0x0fffffff;
  }
  return hash;
}

// The symbol tables of one loaded object. Trusted: the loader itself has just used them.
class LoadedObject {
 public:
  explicit LoadedObject(const link_map& map) : base_(map.l_addr) {
    for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
      // glibc has relocated these pointers in place, musl has not.
      const ElfW(Addr) address =
          entry->d_un.d_ptr < base_ ? entry->d_un.d_ptr + base_ : entry->d_un.d_ptr;
      if (entry->d_tag == DT_SYMTAB)
        symbols_ = reinterpret_cast<const ElfW(Sym)*>(address);
      else if (entry->d_tag == DT_STRTAB)
        strings_ = reinterpret_cast<const char*>(address);
      else if (entry->d_tag == DT_GNU_HASH)
        gnu_hash_ = reinterpret_cast<const uint32_t*>(address);
      else if (entry->d_tag == DT_HASH)
        sysv_hash_ = reinterpret_cast<const uint32_t*>(address);
    }
  }

  // nullptr when the object does not define the function.
  void* Find(const char* name) const {
    if (symbols_ == nullptr || strings_ == nullptr)
      return nullptr;
    if (gnu_hash_ != nullptr)
      return FindByGnuHash(name);
    return sysv_hash_ != nullptr ? FindBySysvHash(name) : nullptr;
  }

 private:
  void* Match(uint32_t index, const char* name) const {
    const ElfW(Sym)& symbol = symbols_[index];
    const bool is_function = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
    if (!is_function || symbol.st_shndx == SHN_UNDEF ||
        !NamesEqual(strings_ + symbol.st_name, name))
      return nullptr;
    return reinterpret_cast<void*>(base_ + symbol.st_value);
  }

  void* FindByGnuHash(const char* name) const {
    const uint32_t bucket_count = gnu_hash_[0];
    const uint32_t first = gnu_hash_[1];
    const uint32_t* buckets = gnu_hash_ + 4 + size_t{gnu_hash_[2]} * 2;
    const uint32_t* chain = buckets + bucket_count;
    const uint32_t hash = GnuHash(name);
    if (bucket_count == 0)
      return nullptr;
    for (uint32_t index = buckets[hash % bucket_count]; index >= first; ++index) {
      const uint32_t entry = chain[index - first];
      if ((entry | 1) == (hash | 1)) {
        if (void* address = Match(index, name))
          return address;
      }
      if ((entry & 1) != 0)
        break;
    }
    return nullptr;
  }

  void* FindBySysvHash(const char* name) const {
    const uint32_t bucket_count = sysv_hash_[0];
    const uint32_t* chain = sysv_hash_ + 2 + bucket_count;
    if (bucket_count == 0)
      return nullptr;
    for (uint32_t index = sysv_hash_[2 + SysvHash(name) % bucket_count]; index != 0;
         index = chain[index]) {
      if (void* address = Match(index, name))
        return address;
    }
    return nullptr;
  }

  ElfW(Addr) base_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  const uint32_t* gnu_hash_ = nullptr;
  const uint32_t* sysv_hash_ = nullptr;
};

const link_map* OwnObject() {
  const r_debug* debug = nullptr;
  if (&_r_debug != nullptr)
    debug = &_r_debug;
  else if (&_dl_debug_addr != nullptr)
    debug = _dl_debug_addr;
  const link_map* map = debug != nullptr ? debug->r_map : nullptr;
  while (map != nullptr && map->l_ld != _DYNAMIC)
    map = map->l_next;
  return map;
}

struct Definition {
  void* address = nullptr;
  const link_map* object = nullptr;
};

Definition FindNext(const char* name) {
  const link_map* map = OwnObject();
  for (map = map != nullptr ? map->l_next : nullptr; map != nullptr; map = map->l_next) {
    if (void* address = LoadedObject(*map).Find(name))
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

bool ResolveRealFunctions() {
  const Definition allocator = FindNext("malloc");
  if (allocator.address == nullptr)
    return false;
#define HPD_RESOLVE(field) \
  g_real.field = reinterpret_cast<decltype(g_real.field)>(FindNext(#field).address)
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
  HPD_RESOLVE(dlclose);
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
