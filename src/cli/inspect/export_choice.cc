#include "cli/inspect/export_choice.h"

#include <iterator>
#include <vector>

#include "cli/flag_table.h"
#include "cli/flag_values.h"
#include "cli/results/process_name.h"
#include "export/selection.h"

namespace heapprofd {
namespace {

// What the file says about it beside its values.
ExportedHeap WithTitles(const ChosenHeap& chosen, View view) {
  ExportedHeap heap{
      .profile = *chosen.profile,
      .dump = *chosen.heap,
      .view = view,
      .title = ProcessName(*chosen.profile) + ", " + chosen.heap->heap_name};
  const OpenedFile& file = *chosen.file;
  for (const auto& process : file.processes) {
    if (&process->profile() != chosen.profile)
      continue;
    const PprofMessage::Header header = HeaderAt(
        file.trace(), static_cast<int64_t>(chosen.heap->end_ns), process->upid());
    heap.about.time_unix_ns = header.time_unix_ns;
    heap.about.comments = header.comments;
  }
  if (chosen.heap->sampling_interval > 1)
    heap.about.comments.push_back(
        "sampling interval: " + std::to_string(chosen.heap->sampling_interval) +
        " bytes");
  return heap;
}

struct NamedView {
  const char* name;
  View view;
};

constexpr NamedView kViews[] = {
    {"space", View::kSpace},
    {"objects", View::kObjects},
    {"alloc_space", View::kAllocSpace},
    {"alloc_objects", View::kAllocObjects},
};

template <typename Rows>
std::vector<std::string> NamesOf(const Rows& rows) {
  std::vector<std::string> names;
  names.reserve(std::size(rows));
  for (const auto& row : rows)
    names.emplace_back(row.name);
  return names;
}

// "use A, B or C".
std::string UseOneOf(const std::vector<std::string>& names) {
  std::string text = "use ";
  for (size_t i = 0; i < names.size(); ++i)
    text.append(i == 0 ? "" : i + 1 < names.size() ? ", " : " or ").append(names[i]);
  return text;
}

std::string ViewName(View view) {
  for (const NamedView& known : kViews) {
    if (known.view == view)
      return known.name;
  }
  return "";
}

std::string ToldViews(const ToldFigures& told) {
  std::string text;
  for (const NamedView& known : kViews) {
    if (IsTold(told, known.view))
      text += (text.empty() ? "it tells --view " : ", ") + std::string(known.name);
  }
  return text.empty() ? "it tells no view" : text;
}

// What the choice leaves of the file.
Result<ChosenHeap> ChooseHeap(const OpenedFile& file, const ExportChoice& choice) {
  const ChosenHeap heap =
      LargestHeap(file, choice.heap, {.pid = choice.pid, .upid = choice.upid});
  const std::string what =
      heap.heap == nullptr
          ? "it has no profile" +
                (choice.pid    ? " of process " + std::to_string(*choice.pid)
                 : choice.upid ? " of upid " + std::to_string(*choice.upid)
                               : "")
      : !choice.heap.empty() && heap.heap->heap_name != choice.heap
          ? "it has no heap named " + choice.heap
          : "";
  if (what.empty())
    return heap;
  return Status(StatusCode::kNotFound,
                "cannot export " + file.path + ": " + what +
                    "; heap_profile stats --json lists those it has");
}

// Of a dump of the maximum what was live then, as it stands in the file.
HeapDump AtMaximum(HeapDump heap) {
  heap.told.live_size = heap.told.live_count = true;
  CallsiteRows<CallsiteTotals> callsites;
  for (const auto& [callsite, totals] : heap.callsites) {
    const auto peak = heap.peak.find(callsite);
    CallsiteTotals at_maximum = totals;
    at_maximum.freed = totals.allocated;
    if (peak != heap.peak.end())
      at_maximum.freed -= peak->second;
    callsites.emplace(callsite, at_maximum);
  }
  heap.callsites = std::move(callsites);
  return heap;
}

}  // namespace

Status ExportChoice::SetFormat(const std::string& option, const std::string& name) {
  for (const ExportFormat& known : kExportFormats) {
    if (known.name == name) {
      format = &known;
      return {};
    }
  }
  const std::vector<std::string> names = NamesOf(kExportFormats);
  return Invalid("cannot use " + option + name + ": there is no such format; " +
                 DidYouMean(name, names, UseOneOf(names)));
}

Status ExportChoice::SetView(const std::string& option, const std::string& name) {
  for (const NamedView& known : kViews) {
    if (known.name == name) {
      view = known.view;
      return {};
    }
  }
  const std::vector<std::string> names = NamesOf(kViews);
  return Invalid("cannot use " + option + name + ": there is no such view; " +
                 DidYouMean(name, names, UseOneOf(names)));
}

Status ExportChoice::SetPid(const std::string& option, const std::string& text) {
  pid = ParseNumber(text, INT32_MAX);
  return pid ? Status()
             : Invalid("cannot use " + option + text + ": it must be a process id");
}

Result<std::string> Export(const OpenedFile& file, const ExportChoice& choice) {
  HPD_TRY_ASSIGN(ChosenHeap heap, ChooseHeap(file, choice));
  ExportedHeap exported = WithTitles(heap, choice.view);
  if (choice.format->encode == EncodePprofFile) {
    exported.about.has_maximum = file.is_at_maximum();
    if (exported.about.has_maximum)
      exported.about.comments.push_back(PeakComment(heap.heap->peak_total));
    return EncodePprofFile(exported);
  }
  const HeapDump at_maximum = file.is_at_maximum() ? AtMaximum(*heap.heap) : HeapDump();
  const HeapDump& dump = file.is_at_maximum() ? at_maximum : *heap.heap;
  if (!IsTold(dump.told, choice.view))
    return Invalid("cannot export " + ViewName(choice.view) + ": " + file.path +
                   " does not tell it; " + ToldViews(dump.told));
  return choice.format->encode({.profile = exported.profile,
                                .dump = dump,
                                .view = exported.view,
                                .title = exported.title,
                                .about = exported.about});
}

}  // namespace heapprofd
