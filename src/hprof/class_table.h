// The classes of a heap dump: what a first walk over it counts, and how large their
// instances are.
//
// Few dumps say how large an object is: HotSpot writes the bytes of the dumped fields, in
// which a reference has the size of an id. How the virtual machine had placed objects
// (ObjectLayout) is concluded from how near to each other they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hprof/dump_file.h"

namespace heapprofd::hprof {

struct ObjectLayout {
  uint32_t reference_bytes = 4;
  uint32_t object_header_bytes = 12;
  uint32_t array_header_bytes = 16;
  bool sizes_are_dumped = false;  // class dumps tell the size of instances
  uint32_t alignment = 8;         // of objects: a power of two
};

constexpr uint64_t Padded(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

// Of an array with so many bytes of elements. Elements of 8 bytes begin at a multiple of
// 8, which the padding at the end amounts to.
constexpr uint64_t ArrayBytes(uint64_t element_bytes, const ObjectLayout& layout) {
  return Padded(layout.array_header_bytes + element_bytes, layout.alignment);
}

// Those that there are: ObjectLayout::array_header_bytes.
inline constexpr uint32_t kArrayHeaders[] = {12, 16, 20, 24};
inline constexpr size_t kArrayHeaderCount = 4;

// Sums over the arrays of a class. How large an array is depends on the layout, which is
// known only when all have been seen; of the layout their alignment is.
struct ArrayFigures {
  uint64_t count = 0;
  uint64_t narrow[kArrayHeaderCount] = {};  // with each of kArrayHeaders
  uint64_t wide[kArrayHeaderCount] = {};    // the same, with references of 8 bytes

  // `narrow_bytes`, `wide_bytes`: of elements.
  void Add(uint64_t narrow_bytes, uint64_t wide_bytes, uint64_t alignment) {
    ++count;
    for (size_t i = 0; i < kArrayHeaderCount; ++i)
      narrow[i] += Padded(kArrayHeaders[i] + narrow_bytes, alignment);
    for (size_t i = 0; i < kArrayHeaderCount; ++i)
      wide[i] += Padded(kArrayHeaders[i] + wide_bytes, alignment);
  }

  void AddNumbers(uint64_t bytes, uint64_t alignment) {
    ++count;
    for (size_t i = 0; i < kArrayHeaderCount; ++i)
      narrow[i] += Padded(kArrayHeaders[i] + bytes, alignment);
  }

  uint64_t Bytes(bool are_references, const ObjectLayout& layout) const;
};

struct HeapClass {
  uint64_t id = 0;
  uint64_t super = 0;
  uint64_t loader = 0;  // 0: that of the virtual machine
  bool is_dumped = false;
  uint32_t dumped_bytes = 0;  // of an instance, as the dump says
  uint32_t most_bytes = 0;    // of the values of any instance
  uint32_t static_references = 0;
  uint32_t static_other_bytes = 0;
  uint16_t field_count = 0;
  uint32_t field_references = 0;
  uint32_t field_other_bytes = 0;
  uint32_t hidden_bytes = 0;  // of fields that an instance has and the dump does not
  bool is_contended = false;  // these are padding, and subclasses' fields are behind it
  const uint8_t* fields = nullptr;  // own ones: (name, type) each
  uint64_t instances = 0;
  // Of the first instances: how many there are behind which an object lies, and how near
  // the nearest is; and how often one follows in the dump that lies before it.
  uint32_t gaps = 0;
  uint32_t steps_back = 0;
  uint64_t least_gap = UINT64_MAX;
  ArrayFigures arrays;  // of which this is the class
};

// Of the fields that a class adds to those of its superclass.
constexpr uint64_t OwnBytes(const HeapClass& type, const ObjectLayout& layout) {
  return uint64_t{type.field_other_bytes} + type.hidden_bytes +
         uint64_t{type.field_references} * layout.reference_bytes;
}

class ClassTable {
 public:
  ClassTable();

  // The row of this class; a new one is made where there is none.
  uint32_t RowOf(uint64_t id) {
    if (id == last_id_)
      return last_row_;
    return Search(id);
  }

  // UINT32_MAX: there is none.
  uint32_t Find(uint64_t id) const;

  HeapClass& operator[](uint32_t row) { return classes_[row]; }

  const HeapClass& operator[](uint32_t row) const { return classes_[row]; }

  uint32_t size() const { return static_cast<uint32_t>(classes_.size()); }

  // Row and its superclasses', nearest first, each once and at most kMaxDepth: a dump may
  // claim circles.
  std::vector<uint32_t> Ancestry(uint32_t row) const;

  // Of an instance that is no array.
  uint64_t InstanceBytes(uint32_t row, const ObjectLayout& layout) const;

  // Of the object that stands for the class `row`; `class_class` is java.lang.Class's.
  uint64_t ClassObjectBytes(uint32_t row,
                            uint32_t class_class,
                            const ObjectLayout& layout) const;

 private:
  static constexpr size_t kMaxDepth = 1000;

  uint64_t UnpaddedBytes(uint32_t row, const ObjectLayout& layout) const;
  uint32_t Search(uint64_t id);
  void Grow();
  size_t SlotOf(uint64_t id) const;

  std::vector<HeapClass> classes_;
  std::vector<uint32_t> slots_;  // row + 1, or 0
  uint64_t secret_;
  uint64_t last_id_ = 0;
  uint32_t last_row_ = 0;
};

}  // namespace heapprofd::hprof
