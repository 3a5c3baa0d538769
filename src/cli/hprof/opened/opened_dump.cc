#include "cli/hprof/opened/opened_dump.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/print.h"
#include "hprof/merge.h"

namespace heapprofd {
namespace {

// "app.hprof.hpi"; of one of several dumps in a file "app.hprof.2.hpi".
std::string IndexPathOf(const OpenedDump& opened) {
  const bool is_alone = opened.source->file.dumps().size() == 1;
  return opened.path + (is_alone ? "" : "." + std::to_string(opened.number)) + ".hpi";
}

}  // namespace

void PrintNotes(const OpenedDump& opened) {
  for (const std::string& note : opened.notes)
    Print(stderr, "%s: %s\n", opened.path.c_str(), note.c_str());
}

void AddDamage(const hprof::HeapCensus& census, OpenedDump* opened) {
  constexpr size_t kMostNotes = 10;
  std::vector<std::string>& notes = opened->notes;
  for (const std::string& damage : census.damage) {
    opened->is_damaged = true;
    if (std::find(notes.begin(), notes.end(), damage) == notes.end() &&
        notes.size() < kMostNotes)
      notes.push_back(damage);
  }
  if (!census.is_layout_known)
    notes.emplace_back(hprof::kUnknownLayout);
  if (opened->is_damaged)
    notes.push_back("what follows is of the " + std::to_string(census.objects) +
                    " objects that could be read");
}

Result<OpenedDump> OpenDump(const std::string& path, uint64_t number, uint64_t process) {
  std::vector<std::string> notes;
  HPD_TRY_ASSIGN(hprof::MappedInput input, hprof::OpenWhole(path, &notes));
  const bool is_trace = IsTrace(input.bytes());
  HPD_TRY_ASSIGN(OpenedDump opened, is_trace
                                        ? OpenTraceOfHeap(input, path, number, process)
                                        : OpenDump(std::move(input), path, number));
  opened.notes.insert(opened.notes.begin(), notes.begin(), notes.end());
  if (!is_trace && path != "-")
    opened.index_path = IndexPathOf(opened);
  return opened;
}

Result<OpenedDump> OpenDump(hprof::MappedInput input,
                            const std::string& path,
                            uint64_t number) {
  HPD_TRY_ASSIGN(hprof::DumpFile file, hprof::DumpFile::Read(input.bytes(), path));
  const size_t count = file.dumps().size();
  if (count == 0)
    return Status(StatusCode::kNotFound,
                  "cannot examine " + path + ": it has no heap dump" +
                      (file.damage().empty() ? "" : "; " + file.damage()));
  if (number > count)
    return Invalid("cannot examine dump " + std::to_string(number) + " of " + path +
                   ": it has " + std::to_string(count));
  OpenedDump opened{path,
                    std::make_unique<DumpOfFile>(
                        DumpOfFile{std::move(input), std::move(file), nullptr}),
                    nullptr, number == 0 ? count : number};
  DumpOfFile& source = *opened.source;
  source.dump = &source.file.dumps()[opened.number - 1];
  if (count > 1 && number == 0)
    opened.notes.push_back("it has " + std::to_string(count) +
                           " dumps, of which this is the last; --dump 1 is the first");
  for (const std::string& damage : {source.input.damage(), source.file.damage()}) {
    if (!damage.empty())
      opened.notes.push_back(damage);
    opened.is_damaged = opened.is_damaged || !damage.empty();
  }
  return opened;
}

}  // namespace heapprofd
