// HeapGraph packets of one packet sequence to the tables of heap_graph.h.
//
// The packets of a dump are a series, as those of heap profiles are. Objects come in the
// order of their ids, as differences; references name their fields or follow the fields
// of the class and then of its superclasses. Objects on the zygote's and the boot image's
// heap count as roots. root_distance is the number of references on the shortest way from
// a root, where referents of weak, finalizer and phantom references are not followed.
// native_size is 0: the registry that would tell is not read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tables/trace_builder.h"

namespace heapprofd {

class HeapGraphImporter {
 public:
  // `builder` must outlive this.
  explicit HeapGraphImporter(TraceBuilder* builder) : builder_(builder) {}

  // A serialized HeapGraph; `ts` is the packet's time, of the trace clock.
  void Add(std::string_view message, int64_t ts);

  // No more packets: what arrived of an unfinished dump is kept.
  void Finish();

 private:
  struct Type {
    uint32_t row = kNoId;  // in HeapGraphTables::classes
    uint64_t location = 0;
    uint64_t object_size = 0;
    uint64_t superclass = 0;
    uint64_t classloader = 0;
    std::vector<uint64_t> fields;
  };

  struct Object {
    uint64_t id = 0;
    uint64_t type = 0;
    uint64_t self_size = 0;
    uint32_t first_reference = 0;
    uint32_t reference_count = 0;
    bool has_fields = false;  // its references name them
    HeapType heap_type = HeapType::kUnknown;
  };

  struct Reference {
    uint64_t object = 0;  // 0: null
    uint64_t field = 0;
  };

  struct Dump {
    int64_t pid = 0;
    int64_t ts = 0;
    std::optional<int64_t> heap_size;
    bool is_truncated = false;
    std::unordered_map<uint64_t, StringId> field_names;
    std::unordered_map<uint64_t, StringId> location_names;
    std::unordered_map<uint64_t, Type> types;
    std::unordered_map<uint64_t, HeapRootType> roots;
    Column<Object> objects;
    Column<Reference> references;
    uint64_t last_id = 0;
    HeapType last_heap_type = HeapType::kUnknown;
  };

  void AddName(std::unordered_map<uint64_t, StringId>& names, std::string_view message);
  void AddType(std::string_view message);
  void AddRoots(std::string_view message);
  void AddObject(std::string_view message);
  void CheckIndex(uint64_t index);
  void FinishDump();
  void FinishClasses(const std::unordered_map<uint64_t, uint32_t>& objects);
  void FinishObjects(uint32_t graph, std::unordered_map<uint64_t, uint32_t>& rows);
  void FinishReferences(uint32_t first_row,
                        const std::unordered_map<uint64_t, uint32_t>& rows);
  void AddReference(uint32_t owner, uint32_t owned, StringId field);
  std::vector<StringId> FieldsOf(uint64_t type) const;

  TraceBuilder* builder_;
  Dump dump_;
  bool is_open_ = false;
  uint64_t next_index_ = 0;
};

}  // namespace heapprofd
