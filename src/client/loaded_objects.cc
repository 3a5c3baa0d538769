#include "client/loaded_objects.h"

#include <elf.h>

#include <cstddef>
#include <cstdint>

// The loader's description of itself: glibc's object (declared in <link.h>), or musl's
// pointer to it.
extern struct r_debug _r_debug __attribute__((weak));
extern "C" struct r_debug* _dl_debug_addr __attribute__((weak));

namespace heapprofd {
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

  // nullptr when the object does not define the function, or not at `address`; nullptr:
  // at any.
  const ElfW(Sym) * Find(const char* name, const void* address) const {
    if (symbols_ == nullptr || strings_ == nullptr)
      return nullptr;
    if (gnu_hash_ != nullptr)
      return FindByGnuHash(name, address);
    return sysv_hash_ != nullptr ? FindBySysvHash(name, address) : nullptr;
  }

  void* AddressOf(const ElfW(Sym) & symbol) const {
    return reinterpret_cast<void*>(base_ + symbol.st_value);
  }

 private:
  bool Matches(const ElfW(Sym) & symbol, const char* name, const void* address) const {
    return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF &&
           NamesEqual(strings_ + symbol.st_name, name) &&
           (address == nullptr || AddressOf(symbol) == address);
  }

  const ElfW(Sym) * FindByGnuHash(const char* name, const void* address) const {
    const uint32_t bucket_count = gnu_hash_[0];
    const uint32_t first = gnu_hash_[1];
    const uint32_t* buckets = gnu_hash_ + 4 + size_t{gnu_hash_[2]} * 2;
    const uint32_t* chain = buckets + bucket_count;
    const uint32_t hash = GnuHash(name);
    if (bucket_count == 0)
      return nullptr;
    for (uint32_t index = buckets[hash % bucket_count]; index >= first; ++index) {
      const uint32_t entry = chain[index - first];
      if ((entry | 1) == (hash | 1) && Matches(symbols_[index], name, address))
        return &symbols_[index];
      if ((entry & 1) != 0)
        break;
    }
    return nullptr;
  }

  const ElfW(Sym) * FindBySysvHash(const char* name, const void* address) const {
    const uint32_t bucket_count = sysv_hash_[0];
    const uint32_t* chain = sysv_hash_ + 2 + bucket_count;
    if (bucket_count == 0)
      return nullptr;
    for (uint32_t index = sysv_hash_[2 + SysvHash(name) % bucket_count]; index != 0;
         index = chain[index]) {
      if (Matches(symbols_[index], name, address))
        return &symbols_[index];
    }
    return nullptr;
  }

  ElfW(Addr) base_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  const uint32_t* gnu_hash_ = nullptr;
  const uint32_t* sysv_hash_ = nullptr;
};

}  // namespace

const link_map* FirstObject() {
  const r_debug* debug = nullptr;
  if (&_r_debug != nullptr)
    debug = &_r_debug;
  else if (&_dl_debug_addr != nullptr)
    debug = _dl_debug_addr;
  return debug != nullptr ? debug->r_map : nullptr;
}

const link_map* ObjectAt(const ElfW(Dyn) * dynamic) {
  const link_map* map = FirstObject();
  while (map != nullptr && map->l_ld != dynamic)
    map = map->l_next;
  return map;
}

void* FindFunction(const link_map& object, const char* name) {
  const LoadedObject loaded(object);
  const ElfW(Sym)* symbol = loaded.Find(name, nullptr);
  return symbol != nullptr ? loaded.AddressOf(*symbol) : nullptr;
}

const ElfW(Sym) *
    FindSymbol(const link_map& object, const char* name, const void* address) {
  return LoadedObject(object).Find(name, address);
}

}  // namespace heapprofd
