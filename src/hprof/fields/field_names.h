// What the fields of a dump are called: "com.example.Node.next". Names are made when they
// are asked for and kept, as much of them as there is room for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "hprof/class_table.h"
#include "hprof/dump_file.h"

namespace heapprofd::hprof {

class FieldNames {
 public:
  static constexpr uint32_t kNoRow = UINT32_MAX;

  // Both outlive this.
  FieldNames(const DumpFile& file, const ClassTable& classes)
      : file_(file), classes_(classes) {}

  // `field`: its (name, type) in the dump. `declaring`: the row of the class that it is
  // called by; kNoRow: none. Without that class where names of all have no room.
  std::string_view Of(const uint8_t* field, uint32_t declaring);

  // Classes that some fields were not called by.
  uint64_t unnamed_classes() const { return unnamed_.size(); }

 private:
  const DumpFile& file_;
  const ClassTable& classes_;
  std::unordered_map<const uint8_t*, std::string> names_;  // by field
  std::unordered_set<uint32_t> unnamed_;
  uint64_t bytes_left_ = uint64_t{64} << 20;
};

}  // namespace heapprofd::hprof
