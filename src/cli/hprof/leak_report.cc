#include "cli/hprof/leak_report.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/format.h"
#include "base/print.h"
#include "cli/hprof/report_parts.h"
#include "object_graph/suspects.h"

namespace heapprofd {
namespace {

using nlohmann::json;

constexpr uint64_t kShareDivisor = 10;  // a suspect has a tenth of the heap
constexpr size_t kPartsShown = 4;

std::string TypeName(const Examined& examined, uint32_t type) {
  return examined.heap.graph.types()[type].name;
}

// Of its own type, in what it retains.
uint64_t ObjectsOfItsType(const Examined& examined, const Suspect& suspect) {
  const uint32_t type = examined.heap.graph.TypeOf(suspect.object);
  const auto part = std::find_if(
      suspect.parts.begin(), suspect.parts.end(),
      [type](const SuspectPart& candidate) { return candidate.type == type; });
  return part == suspect.parts.end() ? 0 : part->objects;
}

json JsonOfSuspect(const Examined& examined,
                   const OpenedDump& opened,
                   const Suspect& suspect,
                   const HoldingPath& path) {
  json parts = json::array();
  for (const SuspectPart& part : suspect.parts)
    parts.push_back({{"class", TypeName(examined, part.type)},
                     {"objects", part.objects},
                     {"bytes", part.bytes}});
  return {{"object", JsonOf(examined, opened, suspect.object)},
          {"count", suspect.count},
          {"retained", suspect.retained},
          {"root", path.root},
          {"path", JsonOf(examined, opened, path)},
          {"classes", std::move(parts)}};
}

std::string Headline(const Examined& examined,
                     const OpenedDump& opened,
                     const Suspect& suspect) {
  const std::string bytes = FormatBytes(static_cast<double>(suspect.retained)) + " (" +
                            FormatShare(static_cast<double>(suspect.retained),
                                        static_cast<double>(examined.total)) +
                            ")";
  if (suspect.count > 1)
    return FormatCount(static_cast<double>(suspect.count)) + " objects of " +
           NameOf(examined.heap, suspect.object) + " retain " + bytes +
           " together, and no other object holds them alone. They have";
  const uint64_t own = ObjectsOfItsType(examined, suspect);
  return TitleOf(examined, opened, suspect.object) + " retains " + bytes +
         (own > 1 ? ", and is the first of " + FormatCount(static_cast<double>(own)) +
                        " of its class"
                  : "") +
         ". It has";
}

void PrintSuspect(const Examined& examined,
                  const OpenedDump& opened,
                  const Suspect& suspect,
                  const HoldingPath& path) {
  Print(stdout, "%s\n", Headline(examined, opened, suspect).c_str());
  for (size_t i = 0; i < std::min(suspect.parts.size(), kPartsShown); ++i)
    Print(stdout, "%12llu %14llu  %s\n",
          static_cast<unsigned long long>(suspect.parts[i].objects),
          static_cast<unsigned long long>(suspect.parts[i].bytes),
          TypeName(examined, suspect.parts[i].type).c_str());
  Print(stdout, "%s is held by ",
        suspect.count > 1 ? "The one of them that retains most" : "It");
  PrintSteps(examined, opened, path);
}

}  // namespace

Status PrintLeaks(OpenedDump& opened, const HprofView& view) {
  HPD_TRY_ASSIGN(const Examined examined, Examine(&opened));
  std::vector<Suspect> suspects =
      FindSuspects(examined.heap.graph, examined.tree, examined.retained,
                   std::max<uint64_t>(examined.total / kShareDivisor, 1));
  suspects.resize(Shown(suspects.size(), view));
  std::vector<uint32_t> objects;
  objects.reserve(suspects.size());
  for (const Suspect& suspect : suspects)
    objects.push_back(suspect.object);
  const std::vector<HoldingPath> paths = HoldingPaths(opened, examined, objects);
  if (view.json) {
    json list = json::array();
    for (size_t i = 0; i < suspects.size(); ++i)
      list.push_back(JsonOfSuspect(examined, opened, suspects[i], paths[i]));
    PrintJson(opened, "suspects", std::move(list), {{"reachable_bytes", examined.total}});
    return {};
  }
  PrintTotal(opened, examined.tree.order.size(), examined.total);
  for (size_t i = 0; i < suspects.size(); ++i) {
    Print(stdout, "%s%zu. ", i == 0 ? "" : "\n", i + 1);
    PrintSuspect(examined, opened, suspects[i], paths[i]);
  }
  if (suspects.empty())
    Print(stdout,
          "Nothing has piled up: no object, and no class of objects, retains a tenth of "
          "the heap.\n");
  return {};
}

}  // namespace heapprofd
