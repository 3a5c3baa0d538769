#include "unwind/late_code.h"

#include <algorithm>
#include <cstddef>

namespace heapprofd {
namespace {

constexpr size_t kMaxStarts = 65'536;
constexpr size_t kMaxFiles = 64;  // as many may be opened at a time

}  // namespace

void LateCode::Note(uint64_t start) {
  if (starts_.size() < kMaxStarts)
    starts_.insert(start);
}

void LateCode::NoteFile(uint64_t start, const std::string& path) {
  Note(start);
  if (files_.size() < kMaxFiles && std::ranges::find(files_, path) == files_.end())
    files_.push_back(path);
}

}  // namespace heapprofd
