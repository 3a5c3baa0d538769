#include "cli/hprof/opened_dump.h"

#include <algorithm>
#include <utility>

#include "hprof/merge.h"

namespace heapprofd {

void AddDamage(const hprof::HeapCensus& census, OpenedDump* opened) {
  constexpr size_t kMostNotes = 10;
  std::vector<std::string>& notes = opened->notes;
  for (const std::string& damage : census.damage) {
    opened->is_damaged = true;
    if (std::find(notes.begin(), notes.end(), damage) == notes.end() &&
        notes.size() < kMostNotes)
      notes.push_back(damage);
  }
  if (opened->is_damaged)
    notes.push_back("what follows is of the " + std::to_string(census.objects) +
                    " objects that could be read");
}

Result<OpenedDump> OpenDump(const std::string& path, uint64_t number) {
  std::vector<std::string> notes;
  HPD_TRY_ASSIGN(hprof::MappedInput input, hprof::OpenWhole(path, &notes));
  HPD_TRY_ASSIGN(OpenedDump opened, OpenDump(std::move(input), path, number));
  opened.notes.insert(opened.notes.begin(), notes.begin(), notes.end());
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
  OpenedDump opened{path, std::move(input), std::move(file), nullptr, {}, false};
  const size_t at = number == 0 ? count - 1 : number - 1;
  opened.dump = &opened.file.dumps()[at];
  if (count > 1 && number == 0)
    opened.notes.push_back("it has " + std::to_string(count) +
                           " dumps, of which this is the last; --dump 1 is the first");
  for (const std::string& damage : {opened.input.damage(), opened.file.damage()}) {
    if (!damage.empty())
      opened.notes.push_back(damage);
    opened.is_damaged = opened.is_damaged || !damage.empty();
  }
  return opened;
}

}  // namespace heapprofd
