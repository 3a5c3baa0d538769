// The ids under which a sequence of packets tells strings, mappings and frames once, and
// the messages that tell them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "profile/model.h"

namespace heapprofd {

// Interned objects that wait to be written: fields of InternedData.
class InternedBatch {
 public:
  InternedBatch() : writer_(data_) {}

  InternedBatch(const InternedBatch&) = delete;
  InternedBatch& operator=(const InternedBatch&) = delete;

  protozero::pbf_writer& writer() { return writer_; }

  const std::string& data() const { return data_; }

  void Clear() { data_.clear(); }

 private:
  std::string data_;
  protozero::pbf_writer writer_;
};

class InternedIds {
 public:
  // By MappingId and FrameId of one profile; 0: not told yet.
  struct OfTarget {
    std::vector<uint64_t> mappings;
    std::vector<uint64_t> frames;
  };

  // One that nothing has.
  uint64_t Next() { return next_++; }

  // `target` has room for the frame and its mapping. What has not been told yet is added
  // to `batch`, before what refers to it.
  uint64_t FrameOf(const TargetProfile& profile,
                   FrameId id,
                   OfTarget& target,
                   InternedBatch& batch);

 private:
  uint64_t String(uint32_t kind, std::string_view text, InternedBatch& batch);
  uint64_t MappingOf(const TargetProfile& profile,
                     MappingId id,
                     OfTarget& target,
                     InternedBatch& batch);
  uint64_t LabelMapping(InternedBatch& batch);

  std::unordered_map<std::string, uint64_t> strings_;  // kind and text to id
  uint64_t label_mapping_ = 0;                         // 0: not yet
  uint64_t next_ = 1;
  uint64_t next_frame_ = 1;  // of their own: stacks are long, and small numbers short
};

}  // namespace heapprofd
