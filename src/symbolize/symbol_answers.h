// Answers for the addresses of one module, and the form in which they travel: back from
// a worker process, and to the disk cache and back.
//
//   u32 strings  u32 lines  u32 addresses
//   strings x (u32 size, bytes)
//   lines x (u32 function, u32 system_name, u32 file, u32 line)       indices of strings
//   addresses x (u64 address, u32 first line, u32 number of lines)    by address
//
// Encoded tables are not to be trusted: a worker has read hostile debug information, a
// cache file may have been written by anybody.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profile/model.h"

namespace heapprofd {

class SymbolAnswers {
 public:
  using TextId = uint32_t;

  // SourceLine with ids for texts.
  struct Line {
    TextId function;
    TextId system_name;
    TextId file;
    uint32_t line;
  };

  TextId Intern(std::string_view text);

  std::string_view Text(TextId id) const { return texts_[id]; }

  // Innermost first; empty: the address is known to have no name. The first answer for an
  // address is kept.
  void Add(uint64_t address, std::span<const Line> lines);

  // Nothing when the table has no answer for this address.
  std::optional<std::span<const Line>> Find(uint64_t address) const;

  std::vector<SourceLine> ToSourceLines(std::span<const Line> lines) const;

  size_t size() const { return answers_.size(); }

  // The answers of `other` for addresses that this table has none for.
  void Merge(const SymbolAnswers& other);

  // Only the answers for these addresses, if there are more.
  SymbolAnswers Subset(std::span<const uint64_t> addresses) const;

  // Appends the encoded table.
  void EncodeTo(std::string& bytes) const;

  // Nothing when these are not the bytes of a table, from `start` on. The table keeps the
  // bytes: its texts are there.
  static std::optional<SymbolAnswers> Decode(std::string bytes, size_t start = 0);

 private:
  struct Answer {
    uint32_t first;
    uint32_t count;
  };

  void Copy(const SymbolAnswers& from, uint64_t address, std::span<const Line> lines);
  bool DecodeContents(class ByteReader& reader);

  std::vector<std::string_view> texts_;  // views of the two that follow
  std::unique_ptr<const std::string> decoded_;
  std::deque<std::string> interned_;
  std::unordered_map<std::string_view, TextId> ids_;
  std::vector<Line> lines_;
  std::unordered_map<uint64_t, Answer> answers_;
};

}  // namespace heapprofd
