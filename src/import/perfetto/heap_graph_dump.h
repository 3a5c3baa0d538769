// What the HeapGraph packets of one dump say, before it is rows: packets refer to
// objects, types and names that later packets describe. Objects and types have numbers in
// the order in which they are first mentioned, as Perfetto numbers its rows.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/column.h"
#include "base/random_seed.h"
#include "base/row_index.h"
#include "profile/model.h"
#include "tables/heap_graph.h"

namespace heapprofd {

// Numbers 0, 1, 2, ... for ids, which a hostile file may choose as it likes.
class IdNumbers {
 public:
  uint32_t NumberOf(uint64_t id) {
    index_.Prepare([this](uint32_t number) { return HashOf(ids_[number]); });
    uint32_t& place =
        index_.Find(HashOf(id), [&](uint32_t number) { return ids_[number] == id; });
    if (place == RowIndex::kNone) {
      place = static_cast<uint32_t>(ids_.size());
      ids_.push_back(id);
      index_.CountAdded();
    }
    return place;
  }

  size_t size() const { return ids_.size(); }

 private:
  uint64_t HashOf(uint64_t id) const { return Mix(id ^ secret_); }

  Column<uint64_t> ids_;
  RowIndex index_;
  uint64_t secret_ = RandomSeed();
};

// Rows that are made when their id is first mentioned.
template <typename Row>
class RowsById {
 public:
  uint32_t NumberOf(uint64_t id) {
    const uint32_t number = numbers_.NumberOf(id);
    rows_.resize(numbers_.size());
    return number;
  }

  Row& operator[](uint32_t number) { return rows_[number]; }

  const Row& operator[](uint32_t number) const { return rows_[number]; }

  uint32_t size() const { return static_cast<uint32_t>(rows_.size()); }

 private:
  IdNumbers numbers_;
  std::vector<Row> rows_;
};

struct HeapGraphDump {
  struct Type {
    bool is_known = false;  // false: only mentioned
    StringId name = kEmptyString;
    HeapClassKind kind = HeapClassKind::kUnknown;
    uint32_t location = kNoId;
    uint64_t object_size = 0;
    uint64_t superclass = 0;       // id of a type; 0: none
    uint64_t classloader = 0;      // id of an object; 0: none
    std::vector<uint32_t> fields;  // of its references, without those of superclasses
  };

  struct Object {
    bool is_known = false;    // false: only mentioned
    bool has_fields = false;  // its references name them
    HeapType heap_type = HeapType::kUnknown;
    uint32_t type = 0;
    uint32_t first_reference = 0;
    uint32_t reference_count = 0;
    uint32_t internal_count = 0;  // the last ones of them: the runtime's own
    uint64_t self_size = 0;       // 0: that of its type
  };

  struct Reference {
    uint32_t object = kNoId;  // kNoId: null
    uint32_t field = kNoId;
  };

  struct Root {
    uint64_t object = 0;  // an id
    HeapRootType type = HeapRootType::kUnknown;
  };

  struct Location {
    StringId path = kNoId;
  };

  struct FieldName {
    StringId name = kNoId;
    StringId type_name = kNoId;
  };

  struct BitmapFields {
    uint32_t object = 0;
    std::optional<int64_t> id;
    std::optional<int64_t> source_id;
    std::optional<int64_t> width;
    std::optional<int64_t> height;
  };

  struct DirectBuffer {
    uint64_t object = 0;  // an id
    uint64_t address = 0;
    uint64_t bytes = 0;
  };

  int64_t pid = 0;
  int64_t ts = 0;
  std::optional<int64_t> heap_size;
  bool is_truncated = false;  // packets are missing
  bool is_complete = false;   // no more packets

  RowsById<FieldName> field_names;
  RowsById<Location> locations;
  RowsById<Type> types;
  IdNumbers object_ids;
  Column<Object> objects;
  Column<Root> roots;

  Column<uint32_t> described;  // objects, in the order of their references
  Column<Reference> references;
  std::vector<std::pair<uint32_t, int64_t>>
      registry_sizes;  // by NativeAllocationRegistry
  std::vector<BitmapFields> bitmaps;
  Column<DirectBuffer> direct_buffers;

  uint32_t ObjectOf(uint64_t id) {
    const uint32_t number = object_ids.NumberOf(id);
    objects.resize(object_ids.size(), Object());
    return number;
  }
};

}  // namespace heapprofd
