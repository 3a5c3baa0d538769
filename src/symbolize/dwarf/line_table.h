// Files and lines of many addresses of one unit, in one pass over its line number
// program.
//
// libdw makes a row in memory of every line of the unit and sorts them, which takes
// longer than all else that is asked about it. Here only the addresses asked for are
// looked at while the program runs; nothing is kept but their rows. Names of files are
// put together when they are needed.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heapprofd {

// Where some code was written.
struct SourcePosition {
  const char* file = nullptr;  // null when unknown; lives as long as the table
  uint32_t line = 0;           // 0 when unknown
};

// Sections of a file that libdw has opened, unpacked; empty when there is none. Those of
// texts end with a zero: see IsSafeToRead().
struct LineSections {
  std::string_view programs;      // .debug_line
  std::string_view line_strings;  // .debug_line_str
  std::string_view strings;       // .debug_str

  static LineSections Of(Dwarf* dwarf);
};

class LineTable {
 public:
  // `unit` is the unit's own entry, `sections` are its file's, `addresses` in
  // ascending order.
  LineTable(Dwarf_Die unit,
            const LineSections& sections,
            std::span<const uint64_t> addresses);

  SourcePosition Find(size_t index) const;

  // Name of a file by the number that DW_AT_call_file uses; null when there is no such
  // file.
  const char* FileName(uint64_t number) const;

 private:
  struct File {
    const char* name;
    uint64_t directory;
    const char* full_name;  // null until it was needed
  };

  struct Row {
    uint64_t address = 0;
    uint64_t file = 0;
    uint32_t line = 0;
  };

  struct Answer {
    uint64_t file = 0;
    uint32_t line = 0;
    bool is_known = false;
  };

  // What the header says about the program.
  struct Program {
    std::string_view code;
    std::string_view operand_counts;  // of the standard opcodes, from 1 on
    uint16_t version = 0;
    uint8_t offset_size = 4;
    uint8_t minimum_step = 1;
    int8_t line_base = 0;
    uint8_t line_range = 1;
    uint8_t opcode_base = 1;
  };

  bool ReadHeader(std::string_view table, Program& program);
  bool ReadNames(std::string_view names, uint8_t offset_size);
  bool ReadOldNames(std::string_view names);
  bool ReadEntries(class FormReader& reader, bool are_files);
  void Run(const Program& program, std::span<const uint64_t> addresses);

  LineSections sections_;
  uint16_t version_ = 0;
  const char* compilation_directory_ = "";
  std::vector<const char*> directories_;
  mutable std::vector<File> files_;
  mutable std::deque<std::string> full_names_;
  std::vector<Answer> answers_;
};

}  // namespace heapprofd
