// The strings of a heaptrack recording, by their numbers. Each is one line, or says how
// long it is, and then may go on in the next ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tables/trace_builder.h"

namespace heapprofd {

class HeaptrackStrings {
 public:
  // `builder` gets them, and outlives this.
  explicit HeaptrackStrings(TraceBuilder* builder) : builder_(builder) {}

  // Whether strings say their lengths, from now on.
  void set_have_lengths(bool have_lengths) { have_lengths_ = have_lengths; }

  // What a line has of the next one. False: it is damaged, or there are too many.
  bool Add(std::string_view text);

  // The last one goes on in the next line, whatever that looks like.
  bool is_open() const { return pending_bytes_ > 0; }

  void Continue(std::string_view line);

  // The empty one for what is none.
  StringId At(std::optional<uint64_t> number) const {
    return number && *number < ids_.size() ? ids_[*number] : kEmptyString;
  }

 private:
  static constexpr size_t kMaxStrings = size_t{1} << 28;

  TraceBuilder* builder_;
  std::vector<StringId> ids_ = {kEmptyString};  // numbers begin with 1
  bool have_lengths_ = false;
  std::string pending_;       // of one that goes on
  size_t pending_bytes_ = 0;  // that it is to have
};

}  // namespace heapprofd
