#include "cli/results/heap_notes.h"

#include <algorithm>

#include "record/no_calls.h"

namespace heapprofd {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string FirstOf(const std::vector<std::string>& names) {
  constexpr size_t kMaxShown = 8;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMaxShown; ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kMaxShown ? text + ", ..." : text;
}

}  // namespace

std::vector<std::string> HeapNotes(const TargetProfile& profile,
                                   const HeapSelection& selection) {
  std::vector<std::string> notes;
  std::vector<std::string> recorded;
  for (const HeapDump& dump : profile.heaps)
    recorded.push_back(dump.heap_name);
  std::vector<std::string> missing;
  for (const HeapSelection::Heap& heap : selection.heaps) {
    if (!Contains(recorded, heap.name))
      missing.push_back(heap.name);
  }
  std::vector<std::string> left_out;
  for (const std::string& name : profile.unrecorded_heaps) {
    if (!Contains(selection.excluded, name))
      left_out.push_back(name);
  }
  if (!missing.empty())
    notes.push_back("the program registered no heap named " + FirstOf(missing) +
                    "; --all-heaps records and names those it has");
  if (!left_out.empty())
    notes.push_back("heaps that the program registered were not recorded: " +
                    FirstOf(left_out) + "; add --all-heaps, or name them in --heaps");
  if (selection.all && !profile.hooks_malloc &&
      !Contains(selection.excluded, kMallocHeapName))
    notes.push_back(
        "malloc's heap was not recorded: the program has only libheapprofd_client; "
        "record "
        "malloc alone by -p or -n without --all-heaps, or both with LD_PRELOAD");
  if (profile.has_own_malloc)
    notes.push_back(OwnMallocWords(profile.process.executable));
  return notes;
}

}  // namespace heapprofd
