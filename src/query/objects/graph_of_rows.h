// A Java heap of a trace as a graph of objects, for what is asked about single ones.
//
// The object that stands for a class has in a trace a class of its own,
// "java.lang.Class<com.example.Node>"; here all of these have one type, "java.lang.Class".
// Memory outside the heap that an object owns is an object of a type of its own, named as
// in trees ("[native] android.graphics.Bitmap"), that this object holds.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "object_graph/object_graph.h"
#include "tables/imported_trace.h"

namespace heapprofd {

struct GraphOfRows {
  static constexpr uint32_t kNoRow = UINT32_MAX;

  uint32_t first_row = 0;  // of heap_graph_object: that of object 0
  uint32_t row_count = 0;
  std::vector<uint32_t> owner_of_native;  // of the objects behind those of rows
  std::vector<uint32_t> class_of_type;    // a row; kNoRow: java.lang.Class, "[native]"
  uint32_t type_of_classes = kNoRow;      // java.lang.Class; kNoRow: there are none
  ObjectGraph graph;                      // a root's kind is its HeapRootType

  // Of what is outside of the heap that of its owner.
  uint32_t RowOf(uint32_t object) const {
    return first_row +
           (object < row_count ? object : owner_of_native[object - row_count]);
  }

  // kNoObject: it is of another heap, or none.
  uint32_t ObjectOf(uint32_t row) const {
    return row >= first_row && row - first_row < row_count ? row - first_row : kNoObject;
  }
};

// `row`: of heap_graph. `weak`: classes of these kinds do not hold what they refer to.
GraphOfRows LoadGraphOfRows(const ImportedTrace& trace,
                            uint32_t row,
                            std::span<const HeapClassKind> weak);

// The class that the object of a row stands for, by the name that people gave it; empty:
// none.
std::string_view ClassStoodFor(const ImportedTrace& trace, uint32_t row);

}  // namespace heapprofd
