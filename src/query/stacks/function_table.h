// The functions that the nodes of a call tree stand for: a tree has millions of nodes but
// few functions, so a node only holds the row of its function.
#pragma once

#include <cstdint>

#include "base/column.h"
#include "base/row_index.h"
#include "base/string_pool.h"
#include "profile/model.h"

namespace heapprofd {

struct TreeFunction {
  StringId name = kEmptyString;  // in FlameTree::names
  StringId mapping_name = kEmptyString;
  StringId source_file = kNoId;  // kNoId, too, when merged nodes disagree
  uint32_t line = 0;             // 0, too, when merged nodes disagree

  bool operator==(const TreeFunction&) const = default;

  // Children of a node with one name and mapping are one node.
  bool HasSameName(const TreeFunction& other) const {
    return name == other.name && mapping_name == other.mapping_name;
  }

  uint64_t NameHash() const { return Mix(uint64_t{name} << 32 | mapping_name); }
};

class FunctionTable {
 public:
  const TreeFunction& operator[](uint32_t row) const { return rows_[row]; }

  // The row of this function; equal ones have one.
  uint32_t Intern(const TreeFunction& function) {
    index_.Prepare([this](uint32_t row) { return HashOf(rows_[row]); });
    uint32_t& row = index_.Find(HashOf(function),
                                [&](uint32_t other) { return rows_[other] == function; });
    if (row == RowIndex::kNone) {
      row = static_cast<uint32_t>(rows_.size());
      rows_.push_back(function);
      index_.CountAdded();
    }
    return row;
  }

  // Of two functions with the same name: the one with what of the place in the source
  // both agree on.
  uint32_t Merge(uint32_t a, uint32_t b) {
    TreeFunction merged = rows_[a];
    if (merged.source_file != rows_[b].source_file)
      merged.source_file = kNoId;
    if (merged.line != rows_[b].line)
      merged.line = 0;
    return merged == rows_[a] ? a : Intern(merged);
  }

  size_t size() const { return rows_.size(); }

 private:
  static uint64_t HashOf(const TreeFunction& function) {
    const uint64_t place = uint64_t{function.source_file} << 32 | function.line;
    return Mix(function.NameHash() ^ place);
  }

  Column<TreeFunction> rows_;
  RowIndex index_;
};

}  // namespace heapprofd
