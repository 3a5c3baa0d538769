// ProfilePackets of one packet sequence to dumps; their samples are for the
// ProfileDecoder.
//
// The packets of a heap's dump are a series: all but the last are marked `continued`, and
// the stacks that the samples refer to may follow the samples. So a series is kept until
// it is complete.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/perfetto/profile_decoder.h"
#include "tables/trace_builder.h"

namespace heapprofd {

// The times of a dump, of CLOCK_MONOTONIC_COARSE, to be converted when all clock
// snapshots have been seen.
struct DumpTimes {
  uint32_t dump = 0;
  int64_t ts = 0;
  std::optional<int64_t> start_ts;
  std::optional<int64_t> peak_ts;
  std::optional<int64_t> idle_ts;
  std::optional<int64_t> idle_until_ts;
};

class ProfileImporter {
 public:
  // All must outlive this.
  ProfileImporter(TraceBuilder* builder,
                  std::shared_ptr<ProfileDecoder> decoder,
                  std::vector<DumpTimes>* times)
      : builder_(builder), decoder_(std::move(decoder)), times_(times) {}

  // A serialized ProfilePacket.
  void Add(std::string_view message);

  // The ids of stacks begin anew: the series under way refers to the old ones.
  void BeginGeneration();

  // No more packets.
  void Finish();

 private:
  struct Header;

  void FinishSeries(bool is_finalized);
  Header ReadHeader(std::string_view part) const;
  void ReadHeaderFields(std::string_view bytes,
                        Header& header,
                        std::string_view& heap_name) const;
  void ReadOwnField(class FieldReader& reader, Header& header) const;
  uint32_t BeginDump(const Header& header, bool is_finalized);
  void AddThreads(const Header& header, uint32_t dump);
  ThreadTotals ReadThread(std::string_view message, uint32_t upid);
  void CountFlags(const Header& header);

  TraceBuilder* builder_;
  std::shared_ptr<ProfileDecoder> decoder_;
  std::vector<DumpTimes>* times_;
  std::deque<std::string> series_;  // of ProcessHeapSamples
  uint64_t next_index_ = 0;
};

}  // namespace heapprofd
