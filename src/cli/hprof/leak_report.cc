#include "cli/hprof/leak_report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/hprof/report_parts.h"
#include "cli/text_layout.h"
#include "hprof/threads.h"
#include "object_graph/suspects.h"

namespace heapprofd {
namespace {

using nlohmann::json;

constexpr uint64_t kShareDivisor = 10;  // a suspect has a tenth of the heap
constexpr size_t kPartsShown = 4;

std::string TypeName(const Examined& examined, uint32_t type) {
  return examined.heap->graph().types()[type].name;
}

// Of its own type, in what it retains.
uint64_t ObjectsOfItsType(const Examined& examined, const Suspect& suspect) {
  const uint32_t type = examined.heap->graph().TypeOf(suspect.object);
  const auto part = std::find_if(
      suspect.parts.begin(), suspect.parts.end(),
      [type](const SuspectPart& candidate) { return candidate.type == type; });
  return part == suspect.parts.end() ? 0 : part->objects;
}

// What is said of a suspect.
struct Account {
  Suspect suspect;
  HoldingPath path;    // to it, or to the one of them that retains most
  HoldingPath inside;  // on from there to where it has piled up; of one alone: nowhere
  std::string thread;  // its name; empty: it is none
};

json JsonOfSuspect(const Examined& examined, const Account& account) {
  const Suspect& suspect = account.suspect;
  json parts = json::array();
  for (const SuspectPart& part : suspect.parts)
    parts.push_back({{"class", TypeName(examined, part.type)},
                     {"objects", part.objects},
                     {"bytes", part.bytes}});
  return {{"object", JsonOf(examined, suspect.object)},
          {"count", suspect.count},
          {"retained", suspect.retained},
          {"root", account.path.root},
          {"path", JsonOf(examined, account.path)},
          {"inside", JsonOf(examined, account.inside)},
          {"thread", account.thread},
          {"classes", std::move(parts)}};
}

std::string Headline(const Examined& examined, const Suspect& suspect) {
  const std::string bytes =
      FormatBytes(static_cast<double>(suspect.retained)) + " (" +
      FormatShare(static_cast<double>(suspect.retained),
                  static_cast<double>(examined.retention.reachable_bytes())) +
      ")";
  if (suspect.count > 1)
    return FormatCount(static_cast<double>(suspect.count)) + " objects of " +
           NameOf(*examined.heap, suspect.object) + " retain " + bytes +
           " together, and no other object holds them alone. They have";
  const uint64_t own = ObjectsOfItsType(examined, suspect);
  return TitleOf(examined, suspect.object) + " retains " + bytes +
         (own > 1 ? ", and is the first of " + FormatCount(static_cast<double>(own)) +
                        " of its class"
                  : "") +
         ". It has";
}

void PrintSuspect(const Examined& examined, const Account& account) {
  const Suspect& suspect = account.suspect;
  Print(stdout, "%s\n", Headline(examined, suspect).c_str());
  for (size_t i = 0; i < std::min(suspect.parts.size(), kPartsShown); ++i)
    Print(stdout, "%12llu %14llu  %s\n",
          static_cast<unsigned long long>(suspect.parts[i].objects),
          static_cast<unsigned long long>(suspect.parts[i].bytes),
          TypeName(examined, suspect.parts[i].type).c_str());
  const std::string thread =
      account.thread.empty() ? "" : ", the thread \"" + Printable(account.thread) + "\",";
  Print(stdout, "%s%s is held by ",
        suspect.count > 1 ? "The one of them that retains most" : "It", thread.c_str());
  PrintSteps(examined, account.path);
  if (account.inside.steps.empty())
    return;
  Print(stdout, "and most of what it retains is in\n");
  PrintStepRows(examined, account.inside);
}

// Of objects that are threads; none: a trace does not tell.
std::map<uint32_t, std::string> ThreadNames(const OpenedDump& opened,
                                            const Examined& examined) {
  std::map<uint32_t, std::string> names;
  if (opened.is_of_trace())
    return names;
  for (hprof::HeapThread& thread : hprof::ThreadsOf(
           opened.source->file, *opened.source->dump, *examined.heap->of_dump()))
    names.emplace(thread.object, std::move(thread.name));
  return names;
}

std::vector<Account> AccountsOf(const OpenedDump& opened,
                                const Examined& examined,
                                std::vector<Suspect> suspects) {
  std::vector<uint32_t> objects;
  objects.reserve(suspects.size());
  for (const Suspect& suspect : suspects)
    objects.push_back(suspect.object);
  std::vector<HoldingPath> paths = HoldingPaths(examined, objects);
  std::vector<std::vector<uint32_t>> ways =
      WaysDown(examined.heap->graph(), examined.retention, objects);
  for (size_t i = 0; i < ways.size(); ++i) {
    if (suspects[i].count == 1)  // has piled up in it
      ways[i].resize(1);
  }
  std::vector<HoldingPath> insides = NameSteps(examined, ways);
  const std::map<uint32_t, std::string> threads = ThreadNames(opened, examined);
  std::vector<Account> accounts;
  for (size_t i = 0; i < suspects.size(); ++i) {
    insides[i].steps.erase(insides[i].steps.begin());  // the suspect itself
    const auto thread = threads.find(objects[i]);
    accounts.push_back({std::move(suspects[i]), std::move(paths[i]),
                        std::move(insides[i]),
                        thread == threads.end() ? "" : thread->second});
  }
  return accounts;
}

}  // namespace

Status PrintLeaks(OpenedDump& opened, const HprofView& view) {
  HPD_TRY_ASSIGN(const Examined examined, Examine(&opened));
  std::vector<Suspect> suspects = FindSuspects(
      examined.heap->graph(), examined.retention,
      std::max<uint64_t>(examined.retention.reachable_bytes() / kShareDivisor, 1));
  suspects.resize(Shown(suspects.size(), view));
  const std::vector<Account> accounts = AccountsOf(opened, examined, std::move(suspects));
  if (view.json) {
    json list = json::array();
    for (const Account& account : accounts)
      list.push_back(JsonOfSuspect(examined, account));
    PrintJson(opened, "suspects", std::move(list),
              {{"reachable_bytes", examined.retention.reachable_bytes()}});
    return {};
  }
  PrintTotal(opened, examined.retention.reachable_count(),
             examined.retention.reachable_bytes());
  for (size_t i = 0; i < accounts.size(); ++i) {
    Print(stdout, i == 0 ? "%zu. " : "\n%zu. ", i + 1);
    PrintSuspect(examined, accounts[i]);
  }
  if (accounts.empty() && examined.retention.reachable_count() > 0)
    Print(stdout,
          "Nothing has piled up: no object, and no class of objects, retains a tenth of "
          "the heap.\n");
  return {};
}

}  // namespace heapprofd
