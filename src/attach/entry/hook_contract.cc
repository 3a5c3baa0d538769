#include "attach/entry/hook_contract.h"

#include <array>
#include <cstddef>

namespace heapprofd {
namespace {

// Functions that only free: HPD_FREE_HOOK in client/image/attach_hooks.cc.
bool OnlyFrees(Hook hook) {
  switch (hook) {
    case Hook::kFree:
    case Hook::kFreeSized:
    case Hook::kFreeAlignedSized:
    case Hook::kDallocx:
    case Hook::kSdallocx:
      return true;
    default:
      return hook >= Hook::kDelete && hook <= Hook::kDeleteArrayAlignedNothrow;
  }
}

}  // namespace

HookContract ContractOf(Hook hook) {
  constexpr std::array<unsigned, kHookCount> kArguments = {
      1, 1, 2, 2, 3,  // malloc, free, calloc, realloc, reallocarray
      2, 2, 3, 1, 1,  // memalign, aligned_alloc, posix_memalign, valloc, pvalloc
      2, 3, 1,        // free_sized, free_aligned_sized, dlclose
      1, 1, 2, 2,     // operator new, new[], and both that do not throw
      2, 2, 3, 3,     // the same with an alignment
      1, 1, 2, 2,     // operator delete, delete[], and both with a size
      2, 2, 2, 2,     // with std::nothrow, with an alignment
      3, 3, 3, 3,     // with an alignment and a size, or std::nothrow
      1, 2, 3, 4,     // exit, mallocx, rallocx, xallocx
      2, 3, 2,        // dallocx, sdallocx, sallocx
  };
  static_assert(static_cast<size_t>(Hook::kSallocx) + 1 == kArguments.size());
  return {.arguments = kArguments[static_cast<size_t>(hook)], .frees = OnlyFrees(hook)};
}

std::string NameOf(Hook hook) {
  constexpr std::array<const char*, kHookCount> kNames = {
#define HPD_SYMBOL(name, symbol) symbol,
      HPD_HOOK_LIST(HPD_SYMBOL)
#undef HPD_SYMBOL
  };
  return kNames[static_cast<size_t>(hook)];
}

bool IsFreeing(Hook hook) {
  return OnlyFrees(hook) || hook == Hook::kRealloc || hook == Hook::kReallocarray ||
         hook == Hook::kRallocx;
}

std::optional<Hook> TwinOf(Hook hook) {
  switch (hook) {
    case Hook::kNew:
      return Hook::kNewNothrow;
    case Hook::kNewArray:
      return Hook::kNewArrayNothrow;
    case Hook::kNewAligned:
      return Hook::kNewAlignedNothrow;
    case Hook::kNewArrayAligned:
      return Hook::kNewArrayAlignedNothrow;
    case Hook::kXallocx:
      return Hook::kSallocx;
    default:
      return std::nullopt;
  }
}

}  // namespace heapprofd
