#include "import/heaptrack_strings.h"

#include "import/line_reader.h"
#include "import/number_reader.h"

namespace heapprofd {

bool HeaptrackStrings::Add(std::string_view text) {
  if (ids_.size() >= kMaxStrings)
    return false;
  if (!have_lengths_) {
    ids_.push_back(builder_->Intern(text));
    return true;
  }
  NumberReader numbers(text);
  const std::optional<uint64_t> size = numbers.Next();
  std::string_view rest = numbers.rest();
  if (!size || !rest.starts_with(' ') || *size > LineReader::kMaxLineBytes)
    return false;
  rest.remove_prefix(1);
  if (rest.size() < *size) {
    pending_ = std::string(rest) + "\n";
    pending_bytes_ = *size;
    return true;
  }
  ids_.push_back(builder_->Intern(rest.substr(0, *size)));
  return true;
}

void HeaptrackStrings::Continue(std::string_view line) {
  pending_ += line;
  if (pending_.size() < pending_bytes_) {
    pending_ += "\n";
    return;
  }
  ids_.push_back(builder_->Intern(std::string_view(pending_).substr(0, pending_bytes_)));
  pending_bytes_ = 0;
}

}  // namespace heapprofd
