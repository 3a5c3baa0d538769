#include "cli/hprof/thread_report.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/format.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/hprof/report_parts.h"
#include "hprof/threads.h"

namespace heapprofd {
namespace {

using nlohmann::json;

constexpr size_t kLocalsShown = 3;

json JsonOfLocals(const Examined& examined, const std::vector<uint32_t>& locals) {
  json list = json::array();
  for (const uint32_t object : locals)
    list.push_back(JsonOf(examined, object));
  return list;
}

json JsonOfThread(const Examined& examined,
                  const OpenedDump& opened,
                  const hprof::HeapThread& thread) {
  json frames = json::array();
  for (const hprof::ThreadFrame& frame : thread.frames)
    frames.push_back({{"method", opened.source->file.names().DescribeFrame(frame.id)},
                      {"locals", JsonOfLocals(examined, frame.locals)}});
  return {{"name", thread.name},
          {"object", JsonOf(examined, thread.object)},
          {"ran_out_of_memory", thread.ran_out_of_memory},
          {"frames", std::move(frames)},
          {"other_locals", JsonOfLocals(examined, thread.other_locals)}};
}

// Those that retain most.
void PrintLocals(const Examined& examined, std::vector<uint32_t> locals) {
  std::ranges::stable_sort(locals, std::ranges::greater(), [&](uint32_t object) {
    return examined.retention.RetainedBy(object);
  });
  for (size_t i = 0; i < std::min(locals.size(), kLocalsShown); ++i)
    Print(stdout, "        %s, retains %s\n", TitleOf(examined, locals[i]).c_str(),
          FormatBytes(static_cast<double>(examined.retention.RetainedBy(locals[i])))
              .c_str());
  if (locals.size() > kLocalsShown)
    Print(stdout, "        and %s more\n",
          FormatCount(static_cast<double>(locals.size() - kLocalsShown)).c_str());
}

void PrintThread(const Examined& examined,
                 const OpenedDump& opened,
                 const hprof::HeapThread& thread) {
  Print(stdout, "\"%s\" %s, retains %s\n", Printable(thread.name).c_str(),
        TitleOf(examined, thread.object).c_str(),
        FormatBytes(static_cast<double>(examined.retention.RetainedBy(thread.object)))
            .c_str());
  if (thread.ran_out_of_memory)
    Print(stdout, "    ran out of memory: it makes an OutOfMemoryError\n");
  for (const hprof::ThreadFrame& frame : thread.frames) {
    Print(stdout, "    at %s\n",
          Printable(opened.source->file.names().DescribeFrame(frame.id)).c_str());
    PrintLocals(examined, frame.locals);
  }
  if (!thread.other_locals.empty()) {
    Print(stdout, "    in native code\n");
    PrintLocals(examined, thread.other_locals);
  }
}

}  // namespace

Status PrintThreads(OpenedDump& opened, const HprofView& view) {
  HPD_TRY_ASSIGN(const Examined examined, Examine(&opened));
  std::vector<hprof::HeapThread> threads = hprof::ThreadsOf(
      opened.source->file, *opened.source->dump, *examined.heap->of_dump());
  const size_t count = threads.size();
  std::ranges::stable_sort(
      threads, std::ranges::greater(), [&](const hprof::HeapThread& thread) {
        return std::pair(thread.ran_out_of_memory,
                         examined.retention.RetainedBy(thread.object));
      });
  threads.resize(Shown(threads.size(), view));
  if (view.json) {
    json list = json::array();
    for (const hprof::HeapThread& thread : threads)
      list.push_back(JsonOfThread(examined, opened, thread));
    PrintJson(opened, "threads", std::move(list), {{"all_threads", count}});
    return {};
  }
  Print(stdout, "%s: %s\n", opened.path.c_str(),
        FormatCounted(static_cast<double>(count), "thread", "threads").c_str());
  for (const hprof::HeapThread& thread : threads) {
    Print(stdout, "\n");
    PrintThread(examined, opened, thread);
  }
  return {};
}

}  // namespace heapprofd
