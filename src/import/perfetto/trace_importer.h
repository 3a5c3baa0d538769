// TracePackets to the tables of an ImportedTrace.
//
// Takes the traces of heapprofd for Linux, and those of Perfetto and Android since
// version 10. What cannot be decoded or refers to nothing is counted in
// ImportedTrace::stats and left out; nothing a file contains is an error. One importer per
// file or concatenation of files: packet sequences go on from one file to the next.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "import/perfetto/byte_source.h"
#include "import/perfetto/heap_graph_rows.h"
#include "import/perfetto/inflate.h"
#include "import/perfetto/interned_tables.h"
#include "import/perfetto/profile_importer.h"
#include "import/perfetto/symbol_importer.h"
#include "profile/deobfuscation.h"
#include "tables/trace_builder.h"

namespace heapprofd {

class TraceImporter {
 public:
  // Both must outlive this. `source`, if there is one, is where the packets come from: it
  // tells how large their file is.
  explicit TraceImporter(TraceBuilder* builder, const ByteSource* source = nullptr);
  ~TraceImporter();

  // One serialized TracePacket.
  void Import(std::string_view packet);

  // Converts the times of all dumps so far: for who looks at the tables before the end.
  void ConvertTimes();

  // Behind the last packet: completes what waited for later ones, applies symbols and
  // mappings, converts times.
  void Finish();

  // A recorder of ours has said that all was over (proto RecordingEnd).
  bool has_end() const { return has_end_; }

 private:
  struct Sequence;
  struct PacketHeader;

  void ImportPacket(std::string_view packet);
  PacketHeader ReadHeader(std::string_view packet) const;
  Sequence* SequenceOf(const PacketHeader& header);
  void UpdateState(const PacketHeader& header, Sequence* sequence);
  void ImportData(uint32_t field,
                  std::string_view message,
                  Sequence* sequence,
                  int64_t ts);
  void ImportInterned(std::string_view message, Sequence* sequence);
  uint64_t NewlyStored(std::string_view compressed);
  void ImportCompressed(uint32_t field, std::string_view bytes);
  void ImportClocks(std::string_view message);
  int64_t TimeOf(const PacketHeader& header, const Sequence* sequence);
  void CountFilesWithoutBuildId();

  TraceBuilder* builder_;
  HeapGraphQueue heap_graphs_;
  std::map<uint64_t, std::unique_ptr<Sequence>> sequences_;
  std::unique_ptr<Sequence> no_sequence_;  // packets without a sequence id
  SymbolImporter symbols_;
  Deobfuscator deobfuscator_;
  std::vector<DumpTimes> dump_times_;
  ClockTable clocks_;
  int64_t latest_ts_ = 0;
  bool has_end_ = false;
  int depth_ = 0;  // of compressed packets
  const ByteSource* source_;
  uint64_t counted_bytes_ = 0;  // of the source, in inflation_
  InflationBudget inflation_;
};

}  // namespace heapprofd
