#include "tables/heap_graph.h"

#include <array>

namespace heapprofd {
namespace {

constexpr std::array<const char*, 15> kRootNames = {
    "ROOT_UNKNOWN",           "ROOT_JNI_GLOBAL",   "ROOT_JNI_LOCAL",
    "ROOT_JAVA_FRAME",        "ROOT_NATIVE_STACK", "ROOT_STICKY_CLASS",
    "ROOT_THREAD_BLOCK",      "ROOT_MONITOR_USED", "ROOT_THREAD_OBJECT",
    "ROOT_INTERNED_STRING",   "ROOT_FINALIZING",   "ROOT_DEBUGGER",
    "ROOT_REFERENCE_CLEANUP", "ROOT_VM_INTERNAL",  "ROOT_JNI_MONITOR"};
constexpr std::array<const char*, 12> kKindNames = {"KIND_UNKNOWN",
                                                    "KIND_NORMAL",
                                                    "KIND_NOREFERENCES",
                                                    "KIND_STRING",
                                                    "KIND_ARRAY",
                                                    "KIND_CLASS",
                                                    "KIND_CLASSLOADER",
                                                    "KIND_DEXCACHE",
                                                    "KIND_SOFT_REFERENCE",
                                                    "KIND_WEAK_REFERENCE",
                                                    "KIND_FINALIZER_REFERENCE",
                                                    "KIND_PHANTOM_REFERENCE"};
constexpr std::array<const char*, 4> kHeapNames = {
    "HEAP_TYPE_UNKNOWN", "HEAP_TYPE_APP", "HEAP_TYPE_ZYGOTE", "HEAP_TYPE_BOOT_IMAGE"};

template <typename Names, typename Enum>
const char* NameIn(const Names& names, Enum value) {
  const auto index = static_cast<size_t>(value);
  return names[index < names.size() ? index : 0];
}

}  // namespace

const char* NameOf(HeapRootType type) {
  return NameIn(kRootNames, type);
}

const char* NameOf(HeapClassKind kind) {
  return NameIn(kKindNames, kind);
}

const char* NameOf(HeapType type) {
  return NameIn(kHeapNames, type);
}

}  // namespace heapprofd
