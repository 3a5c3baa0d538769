// The callstacks and samples of one packet sequence to callsites, allocations and
// estimates: most of a trace, and most of the work of reading it. TraceImporter, which
// reads everything else, hands them over as steps; DecodeQueue (tables/decode_queue.h)
// says when a step is done: at once, or when somebody asks for the tables.
//
// What an id means depends on what came before it, so the steps of a sequence are done in
// the order of the file.
//
// Figures of a sample are totals since its stack id appeared; rows are what changed since
// the last dump of that id in that heap. (Perfetto's importer keeps the totals per
// process and callsite, so that two heaps that share a stack spoil each other's figures;
// per id and heap they do not.) Figures that fall are errors and counted; the peak's may
// fall.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/perfetto/iid_map.h"
#include "tables/decode_queue.h"
#include "tables/stack_interner.h"
#include "tables/trace_builder.h"

namespace heapprofd {

class ProfileDecoder : public Decoder {
 public:
  // `builder` must outlive this.
  explicit ProfileDecoder(TraceBuilder* builder)
      : builder_(builder), stacks_(std::make_unique<StackInterner>(builder)) {}

  void Do(const DecodeStep& step) override;

  void ForgetStacks() override { stacks_.reset(); }

 private:
  struct Ids {
    IidMap frames;
    IidMap callstacks;
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
    Column<Totals> totals;
  };

  struct Sample;

  void Do(NewGeneration step);
  void Do(const StackStep& step);
  void Do(const SampleStep& step);
  void Insert(IidMap& map, uint64_t iid, uint32_t row);
  void AddCallstack(Ids& ids, std::string_view message);
  void FlushStacks(Ids& ids);
  uint32_t FindCallstack(uint64_t iid) const;
  static bool ReadSample(std::string_view bytes, Sample& sample);
  bool AddSamples(const SampleStep& step, Heap& heap);
  bool AddShape(std::string_view bytes, uint32_t upid);
  bool AddLiveBlocks(std::string_view bytes);
  void AddSample(const Sample& sample, const SampleStep& step, Heap& heap);
  void AddRows(const Sample& sample, const SampleStep& step, Totals& totals);

  TraceBuilder* builder_;
  Ids interned_;
  Ids inline_;  // of ProfilePackets
  std::unique_ptr<StackInterner> stacks_;
  std::map<std::pair<uint32_t, StringId>, Heap> heaps_;
  uint32_t generation_ = 0;
};

}  // namespace heapprofd
