// Java heaps of a trace, as tables: `heap_graph`, `heap_graph_class`,
// `heap_graph_object`, `heap_graph_reference`. Ids are row numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/column.h"
#include "base/string_pool.h"

namespace heapprofd {

// Perfetto's numbers; the names in SQL are "ROOT_JNI_GLOBAL" and so on.
enum class HeapRootType : uint8_t {
  kUnknown,
  kJniGlobal,
  kJniLocal,
  kJavaFrame,
  kNativeStack,
  kStickyClass,
  kThreadBlock,
  kMonitorUsed,
  kThreadObject,
  kInternedString,
  kFinalizing,
  kDebugger,
  kReferenceCleanup,
  kVmInternal,
  kJniMonitor,
  kNone = 255,  // no root
};

// Perfetto's numbers: "KIND_NORMAL" and so on.
enum class HeapClassKind : uint8_t {
  kUnknown,
  kNormal,
  kNoReferences,
  kString,
  kArray,
  kClass,
  kClassLoader,
  kDexCache,
  kSoftReference,
  kWeakReference,
  kFinalizerReference,
  kPhantomReference,
};

// Perfetto's numbers.
enum class HeapType : uint8_t { kUnknown, kApp, kZygote, kBootImage };

inline constexpr size_t kHeapRootTypes = 15;
inline constexpr size_t kHeapClassKinds = 12;
inline constexpr size_t kHeapTypes = 4;

// "ROOT_JNI_GLOBAL"; "KIND_NORMAL"; "HEAP_TYPE_APP". Numbers outside: the first of each.
const char* NameOf(HeapRootType type);
const char* NameOf(HeapClassKind kind);
const char* NameOf(HeapType type);

// Of several roots of an object the one with the highest rank counts, else the first.
int RankOf(HeapRootType type);

// `heap_graph`: one snapshot of one process.
struct ImportedHeapGraph {
  uint32_t upid = 0;
  int64_t ts = 0;
  std::optional<int64_t> heap_size = {};
  bool truncated = false;     // packets are missing
  bool has_contents = false;  // ObjectContents, of a dump file; it comes before others
  StringId dump_reason = UINT32_MAX;
  uint32_t first_object = 0;
  uint32_t object_count = 0;
};

struct HeapClass {
  StringId name = kEmptyString;
  StringId deobfuscated_name = UINT32_MAX;
  StringId location = UINT32_MAX;
  uint32_t superclass = UINT32_MAX;
  uint32_t classloader = UINT32_MAX;  // an object
  HeapClassKind kind = HeapClassKind::kUnknown;
  bool is_array = false;

  // The name that people gave the class, where it is known.
  StringId ShownName() const {
    return deobfuscated_name != UINT32_MAX ? deobfuscated_name : name;
  }
};

struct HeapObjectTable {
  Column<uint32_t> graph;  // -> HeapGraphTables::graphs
  Column<uint32_t> type;   // -> classes
  Column<int64_t> self_size;
  Column<int64_t> native_size;
  Column<uint32_t> first_reference;  // its set; kNoId: it has none
  Column<uint32_t> reference_count;
  Column<int32_t> root_distance;  // -1: not reachable
  Column<HeapRootType> root_type;
  Column<HeapType> heap_type;
  Column<uint64_t> address;  // ours; of the first rows only, 0: not known

  size_t row_count() const { return graph.size(); }
};

struct HeapReferenceTable {
  Column<uint32_t> owner;
  Column<uint32_t> owned;  // kNoId: null
  Column<StringId> field_name;
  Column<StringId> field_type_name;
  Column<StringId> deobfuscated_field_name;  // kNoId: NULL

  size_t row_count() const { return owner.size(); }
};

// A row of `heap_graph_object_data`, of a trace's object. Of an object it is found by its
// place: they are in the order of objects.
struct HeapObjectData {
  uint32_t object = 0;
  uint32_t first_primitive = 0;  // its set
};

// A row of `heap_graph_primitive`, the same: the value of a field: an int or a long.
struct HeapPrimitive {
  uint32_t set = 0;
  StringId field_name = 0;
  StringId field_type = 0;
  int64_t value = 0;
};

// Ours: memory outside the heap that an object stands for.
struct HeapDirectBuffer {
  uint32_t object = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
};

// A row of `android_heap_graph_java_oome_details`.
struct OutOfMemoryDetails {
  uint32_t graph = 0;
  int64_t allocation_size = 0;
  int64_t total_bytes_free = 0;
  int64_t free_bytes_until_oom = 0;
  StringId error_message = UINT32_MAX;
};

struct HeapGraphTables {
  std::vector<ImportedHeapGraph> graphs;
  std::vector<HeapClass> classes;
  HeapObjectTable objects;
  HeapReferenceTable references;
  std::vector<HeapObjectData> object_data;
  std::vector<HeapPrimitive> primitives;
  std::vector<HeapDirectBuffer> direct_buffers;
  std::vector<OutOfMemoryDetails> out_of_memory;
};

// A reference with this name does not count when its owner is weak, a finalizer's or a
// phantom.
inline constexpr std::string_view kReferentField = "java.lang.ref.Reference.referent";

// Fills in root_distance of the objects from `first_row` on: one graph's, of which all
// else is known. `referent`: kReferentField.
void SetRootDistances(uint32_t first_row, StringId referent, HeapGraphTables* to);

}  // namespace heapprofd
