#include "profile/allocator_internals.h"

#include <algorithm>
#include <array>

namespace heapprofd {
namespace {

// Prefixes of demangled names.
constexpr std::array kPrefixes = {"operator new",
                                  "std::",
                                  "__gnu_cxx::",
                                  "malloc",
                                  "calloc",
                                  "realloc",
                                  "strdup",
                                  "__strdup",
                                  "strndup",
                                  "__strndup",
                                  "xmalloc",
                                  "xcalloc",
                                  "xrealloc",
                                  "xstrdup",
                                  "PyMem_",
                                  "PyObject_Malloc",
                                  "PyObject_Realloc",
                                  "PyObject_Calloc",
                                  "_PyObject_Malloc",
                                  "_PyMem_",
                                  "g_malloc",
                                  "g_realloc",
                                  "g_slice_alloc",
                                  "zmalloc",
                                  "zcalloc",
                                  "zrealloc",
                                  "ztrymalloc",
                                  "ztryrealloc",
                                  "sqlite3MemMalloc",
                                  "sqlite3Malloc",
                                  "sqlite3_malloc",
                                  "alloc::",
                                  "<alloc::",
                                  "__rust_alloc",
                                  "__rg_alloc",
                                  "__rdl_alloc",
                                  "llvm::allocate_buffer"};

// Demangled function templates begin with what they return: "Row* cache::Find<int>(int)".
std::string_view WithoutReturnType(std::string_view name) {
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (name.substr(i).starts_with("operator"))
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
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view prefix) {
    return function.starts_with(prefix);
  });
}

}  // namespace heapprofd
