// Which addresses of an ELF image the code in its file has. Most images have one distance
// between the two throughout; linkers that are told where a section goes, and BOLT, make
// several executable segments, each with a distance of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heapprofd {

// An executable segment, as the program headers have it.
struct CodeSegment {
  uint64_t offset = 0;     // in the file
  uint64_t address = 0;    // ELF address
  uint64_t file_size = 0;  // bytes
  uint64_t alignment = 1;  // never 0

  // What has to be added to an offset in the file to get the ELF address.
  uint64_t load_bias() const { return address - offset; }

  bool Holds(uint64_t file_offset) const {
    return file_offset >= offset && file_offset - offset < file_size;
  }

  // Whether a mapping of the segment has the page at `file_offset`.
  bool HoldsPage(uint64_t file_offset) const {
    const uint64_t first_page = offset & ~uint64_t{4095};
    return file_offset >= first_page && file_offset < offset + file_size;
  }
};

class CodeSegments {
 public:
  // In the order of the program headers. Real files have a handful; what is beyond
  // `kMax` is ignored.
  void Add(const CodeSegment& segment) {
    if (segments_.size() < kMax)
      segments_.push_back(segment);
  }

  // The segment that an executable mapping of the file from `offset` on shows; nullptr:
  // none. Where linkers save space the end of one segment and the begin of the next are
  // in one page of the file, which is then mapped twice: the mapping at `start` shows the
  // one that agrees with `image_base`. That is what the loader has added to the ELF
  // addresses, ImageBase() of another mapping; 0: unknown.
  const CodeSegment* OfMapping(uint64_t start,
                               uint64_t offset,
                               uint64_t image_base) const {
    const CodeSegment* found = nullptr;
    for (const CodeSegment& segment : segments_) {
      if (segment.HoldsPage(offset) &&
          (found == nullptr || ImageBase(start, offset, segment) == image_base))
        found = &segment;
    }
    return found;
  }

  static uint64_t ImageBase(uint64_t start, uint64_t offset, const CodeSegment& segment) {
    return start - offset - segment.load_bias();
  }

  // The segment that has this byte of the file; nullptr: none.
  const CodeSegment* Holding(uint64_t file_offset) const {
    const auto found = std::ranges::find_if(segments_, [&](const CodeSegment& segment) {
      return segment.Holds(file_offset);
    });
    return found != segments_.end() ? &*found : nullptr;
  }

  const std::vector<CodeSegment>& all() const { return segments_; }

 private:
  static constexpr size_t kMax = 64;

  std::vector<CodeSegment> segments_;
};

}  // namespace heapprofd
