// Names of the enumerations of heap graphs, as SQL shows them.
#include "trace/heap_graph.h"

namespace heapprofd {
namespace {

template <typename Enum, size_t N>
const char* NameIn(const char* const (&names)[N], Enum value) {
  const auto index = static_cast<size_t>(value);
  return names[index < N ? index : 0];
}

constexpr const char* kRootTypes[] = {
    "ROOT_UNKNOWN",           "ROOT_JNI_GLOBAL",   "ROOT_JNI_LOCAL",
    "ROOT_JAVA_FRAME",        "ROOT_NATIVE_STACK", "ROOT_STICKY_CLASS",
    "ROOT_THREAD_BLOCK",      "ROOT_MONITOR_USED", "ROOT_THREAD_OBJECT",
    "ROOT_INTERNED_STRING",   "ROOT_FINALIZING",   "ROOT_DEBUGGER",
    "ROOT_REFERENCE_CLEANUP", "ROOT_VM_INTERNAL",  "ROOT_JNI_MONITOR"};
constexpr const char* kClassKinds[] = {"KIND_UNKNOWN",
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
constexpr const char* kHeapTypes[] = {"HEAP_TYPE_UNKNOWN", "HEAP_TYPE_APP",
                                      "HEAP_TYPE_ZYGOTE", "HEAP_TYPE_BOOT_IMAGE"};

}  // namespace

const char* NameOf(HeapRootType type) {
  return NameIn(kRootTypes, type);
}

const char* NameOf(HeapClassKind kind) {
  return NameIn(kClassKinds, kind);
}

const char* NameOf(HeapType type) {
  return NameIn(kHeapTypes, type);
}

}  // namespace heapprofd
