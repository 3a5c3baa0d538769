// ProfilePackets of one packet sequence to dumps.
//
// The packets of a heap's dump are a series: all but the last are marked `continued`, and
// the stacks that the samples refer to may follow the samples. So a series is kept until
// it is complete.
//
// Figures of a sample are totals since its stack id appeared; rows are what changed since
// the last dump of that id in that heap. (Perfetto's importer keeps the totals per
// process and callsite, so that two heaps that share a stack spoil each other's figures;
// per id and heap they do not.) Figures that fall are errors and counted; the peak's may
// fall.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "trace/interned_tables.h"
#include "trace/trace_builder.h"

namespace heapprofd {

// The times of a dump, to be converted when all clock snapshots have been seen.
struct DumpTimes {
  uint32_t dump = 0;
  bool is_monotonic = false;  // ts is CLOCK_MONOTONIC_COARSE's; else the trace clock's
  int64_t ts = 0;
  std::optional<int64_t> start_ts;  // CLOCK_MONOTONIC_COARSE
  std::optional<int64_t> peak_ts;
};

class ProfileImporter {
 public:
  // All must outlive this.
  ProfileImporter(TraceBuilder* builder,
                  const InternedTables* interned,
                  std::vector<DumpTimes>* times)
      : builder_(builder), interned_(interned), times_(times) {}

  // A serialized ProfilePacket; `packet_ts`: the packet's time, of the trace clock.
  void Add(std::string_view message, int64_t packet_ts);

  // The ids of stacks begin anew: the series under way refers to the old ones.
  void BeginGeneration();

  // No more packets.
  void Finish();

 private:
  // One ProcessHeapSamples.
  struct Part {
    std::string bytes;
    int64_t packet_ts = 0;
  };

  struct Totals {
    uint32_t callsite = kNoId;
    uint32_t generation = 0;
    uint64_t allocated = 0;
    uint64_t freed = 0;
    uint64_t alloc_count = 0;
    uint64_t free_count = 0;
  };

  struct Heap {
    IidMap slots;  // stack id -> index
    std::vector<Totals> totals;
  };

  struct Header;
  struct Sample;

  void FinishSeries(bool is_finalized);
  Header ReadHeader(const Part& part) const;
  static void ReadHeaderFields(std::string_view bytes,
                               Header& header,
                               std::string_view& heap_name);
  uint32_t BeginDump(const Header& header, bool is_finalized);
  void CountFlags(const Header& header);
  static Sample ReadSample(std::string_view bytes);
  void AddSamples(const Part& part, const Header& header, Heap& heap);
  void AddSample(const Sample& sample, const Header& header, Heap& heap);
  void AddRows(const Sample& sample, const Header& header, Totals& totals);

  TraceBuilder* builder_;
  const InternedTables* interned_;
  std::vector<DumpTimes>* times_;
  std::deque<Part> series_;
  std::map<std::pair<uint32_t, StringId>, Heap> heaps_;
  uint64_t next_index_ = 0;
  uint32_t generation_ = 0;
};

}  // namespace heapprofd
