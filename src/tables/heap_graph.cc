#include "tables/heap_graph.h"

#include <array>

#include "profile/model.h"

namespace heapprofd {
namespace {

constexpr std::array<const char*, kHeapRootTypes> kRootNames = {
    "ROOT_UNKNOWN",           "ROOT_JNI_GLOBAL",   "ROOT_JNI_LOCAL",
    "ROOT_JAVA_FRAME",        "ROOT_NATIVE_STACK", "ROOT_STICKY_CLASS",
    "ROOT_THREAD_BLOCK",      "ROOT_MONITOR_USED", "ROOT_THREAD_OBJECT",
    "ROOT_INTERNED_STRING",   "ROOT_FINALIZING",   "ROOT_DEBUGGER",
    "ROOT_REFERENCE_CLEANUP", "ROOT_VM_INTERNAL",  "ROOT_JNI_MONITOR"};
constexpr std::array<const char*, kHeapClassKinds> kKindNames = {
    "KIND_UNKNOWN",
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
constexpr std::array<const char*, kHeapTypes> kHeapNames = {
    "HEAP_TYPE_UNKNOWN", "HEAP_TYPE_APP", "HEAP_TYPE_ZYGOTE", "HEAP_TYPE_BOOT_IMAGE"};

template <typename Names, typename Enum>
const char* NameIn(const Names& names, Enum value) {
  const auto index = static_cast<size_t>(value);
  return names[index < names.size() ? index : 0];
}

bool IsWeak(HeapClassKind kind) {
  return kind == HeapClassKind::kWeakReference ||
         kind == HeapClassKind::kFinalizerReference ||
         kind == HeapClassKind::kPhantomReference;
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

int RankOf(HeapRootType type) {
  if (type == HeapRootType::kStickyClass)
    return 3;
  if (type == HeapRootType::kJniGlobal)
    return 2;
  return type == HeapRootType::kJniLocal ? 1 : 0;
}

void SetRootDistances(uint32_t first_row, StringId referent, HeapGraphTables* to) {
  const HeapGraphTables& tables = *to;
  HeapObjectTable& objects = to->objects;
  Column<uint32_t> queue;
  for (uint32_t row = first_row; row < objects.row_count(); ++row) {
    if (objects.root_type[row] != HeapRootType::kNone) {
      objects.root_distance[row] = 0;
      queue.push_back(row);
    }
  }
  for (size_t next = 0; next < queue.size(); ++next) {
    const uint32_t owner = queue[next];
    const bool is_weak = IsWeak(tables.classes[objects.type[owner]].kind);
    for (uint32_t i = 0; i < objects.reference_count[owner]; ++i) {
      const uint32_t reference = objects.first_reference[owner] + i;
      const uint32_t owned = tables.references.owned[reference];
      if (owned == kNoId || objects.root_distance[owned] >= 0 ||
          (is_weak && tables.references.field_name[reference] == referent))
        continue;
      objects.root_distance[owned] = objects.root_distance[owner] + 1;
      queue.push_back(owned);
    }
  }
}

}  // namespace heapprofd
