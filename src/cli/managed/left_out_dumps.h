// The dumps of Java heaps that a recording has left out, by their reasons: said once, at
// its end.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace heapprofd {

class LeftOutDumps {
 public:
  // Another one was being taken.
  void NoteBusy() { ++busy_; }

  // There were as many as were asked for.
  void NoteBeyond() { ++beyond_; }

  void NoteEnding() { ++ending_; }

  // There was nobody to ask; the last reason is told.
  void NoteUnasked(std::string why) {
    ++unasked_;
    why_unasked_ = std::move(why);
  }

  // A line; "": none was left out. `most`: how many were asked for.
  std::string Text(uint32_t most) const;

 private:
  uint64_t busy_ = 0;
  uint64_t beyond_ = 0;
  uint64_t ending_ = 0;
  uint64_t unasked_ = 0;
  std::string why_unasked_;
};

}  // namespace heapprofd
