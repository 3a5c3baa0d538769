// The formats of other programs in which a heap is written: a row each, and the encoder
// that the row names, in a file of its own. `heap_profile export`, its help, and the page
// of `heap_profile view` offer what stands here.
#pragma once

#include <array>
#include <string>

#include "export/pprof.h"
#include "export/view.h"
#include "profile/model.h"

namespace heapprofd {

struct ExportedHeap {
  const TargetProfile& profile;
  const HeapDump& dump;
  View view = View::kSpace;  // of formats that have one value only
  std::string title = {};    // for people
  PprofOptions about = {};
};

struct ExportFormat {
  const char* name;
  const char* help;
  const char* suffix;  // of files
  std::string (*encode)(const ExportedHeap&);
};

std::string EncodePprofFile(const ExportedHeap& heap);
std::string EncodeFolded(const ExportedHeap& heap);
std::string EncodeSpeedscope(const ExportedHeap& heap);
std::string EncodeFunctionsCsv(const ExportedHeap& heap);

inline constexpr auto kExportFormats = std::to_array<ExportFormat>({
    {"pprof", "all four views, gzip: go tool pprof, speedscope.app", "pb.gz",
     EncodePprofFile},
    {"folded", "a line per stack: flamegraph.pl, inferno", "folded", EncodeFolded},
    {"speedscope", "JSON: speedscope.app", "speedscope.json", EncodeSpeedscope},
    {"csv", "a row per function: itself, total", "csv", EncodeFunctionsCsv},
});

}  // namespace heapprofd
