#include "profile/allocator_internals.h"

#include <algorithm>
#include <array>

namespace heapprofd {
namespace {

// Prefixes of demangled names.
constexpr auto kPrefixes = std::to_array<std::string_view>(
    {// C, C++ and Rust.
     "operator new", "std::", "__gnu_cxx::", "malloc", "calloc", "realloc", "strdup",
     "__strdup", "strndup", "__strndup", "_obstack_",
     "alloc::", "<alloc::", "__rust_alloc", "__rg_alloc", "__rdl_alloc",
     // Wrappers that many programs have.
     "xmalloc", "xcalloc", "xrealloc", "xstrdup", "xstrndup", "zmalloc", "zcalloc",
     "zrealloc", "ztrymalloc", "ztryrealloc",
     // Languages.
     "PyMem_", "PyObject_Malloc", "PyObject_Realloc", "PyObject_Calloc",
     "_PyObject_Malloc", "_PyMem_", "Perl_safesys", "Perl_savepv", "ruby_xmalloc",
     "ruby_xcalloc", "ruby_xrealloc", "_emalloc", "_erealloc", "luaM_",
     // HotSpot.
     "os::malloc", "os::realloc", "os::strdup", "AllocateHeap", "ReallocateHeap",
     // Libraries and programs.
     "g_malloc", "g_realloc", "g_try_malloc", "g_try_realloc", "g_slice_alloc",
     "g_strdup", "g_strndup", "sqlite3MemMalloc", "sqlite3Malloc", "sqlite3_malloc",
     "llvm::allocate_buffer", "CRYPTO_malloc", "CRYPTO_zalloc", "CRYPTO_realloc",
     "apr_palloc", "av_malloc", "av_realloc", "palloc", "repalloc", "MemoryContextAlloc",
     "AllocSetAlloc", "ngx_alloc", "ngx_palloc", "QArrayData::allocate",
     "QArrayData::reallocate"});

// Demangled function templates begin with what they return: "Row* cache::Find<int>(int)".
std::string_view WithoutReturnType(std::string_view name) {
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == 'o' && name.substr(i).starts_with("operator"))
      break;
    if (c == '(' && depth == 0)
      break;
    if (c == '<' || c == '(')
      ++depth;
    else if (c == '>' || c == ')')
      --depth;
    else if (c == ' ' && depth == 0)
      begin = i + 1;
  }
  return name.substr(begin);
}

}  // namespace

bool IsAllocatorInternal(std::string_view name) {
  const std::string_view function = WithoutReturnType(name);
  return !function.empty() &&
         std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view prefix) {
           return prefix[0] == function[0] && function.starts_with(prefix);
         });
}

}  // namespace heapprofd
