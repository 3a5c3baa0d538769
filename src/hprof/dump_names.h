// What names the things in the heap dumps of an hprof file: its records of strings, of
// classes, and of what threads were doing. Records refer to others, which may come later,
// or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heapprofd::hprof {

// "0x1f": an id, or another number that messages name so.
std::string HexOf(uint64_t number);

// "java/lang/String" and "[Ljava/lang/String;" as the language writes them.
std::string JavaName(std::string_view name);

class DumpNames {
 public:
  DumpNames() = default;

  // `id_bytes`: 4 or 8.
  explicit DumpNames(uint32_t id_bytes) : id_bytes_(id_bytes) {}

  // The body of a record, whose bytes outlive this. Nothing of one that names nothing, or
  // is too short.
  void Read(uint8_t tag, std::string_view record);

  // Behind the last record; nothing is found before.
  void Sort();

  // Empty: there is none.
  std::string_view StringOf(uint64_t id) const;

  // As the language writes it; "class 0x1234" when the file does not name it.
  std::string ClassName(uint64_t class_id) const;

  bool HasName(uint64_t class_id) const;

  // The ids of what a thread was doing, innermost first. `thread` is its number in the
  // dump. Empty: the file does not tell.
  std::vector<uint64_t> StackOf(uint32_t thread) const;

  // "java.lang.Object.wait(Object.java:338)"
  std::string DescribeFrame(uint64_t id) const;

 private:
  using NamedIds = std::vector<std::pair<uint64_t, std::string_view>>;

  uint32_t id_bytes_ = 0;
  NamedIds strings_;                                          // sorted
  std::vector<std::pair<uint64_t, uint64_t>> class_names_;    // class, string; sorted
  std::vector<std::pair<uint64_t, uint64_t>> class_serials_;  // number, class; sorted
  NamedIds frames_;  // bodies of records, by the frames' ids; sorted
  NamedIds stacks_;  // bodies of records, by the threads' numbers; sorted
};

}  // namespace heapprofd::hprof
