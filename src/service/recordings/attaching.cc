#include "service/recordings/attaching.h"

#include <stdlib.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

#include "engine/process_info.h"
#include "engine/running_processes.h"
#include "engine/target_rules.h"
#include "wire/handshake.h"
#include "wire/service_place.h"

namespace heapprofd {
namespace {

// Where a name may be a symbolic link: the usual places, and the caller's own PATH.
std::vector<std::string> PlacesOfPrograms(const std::string& search_path) {
  std::vector<std::string> places = {"/usr/local/sbin",  "/usr/local/bin", "/usr/sbin",
                                     "/usr/bin",         "/sbin",          "/bin",
                                     "/usr/local/games", "/usr/games",     "/snap/bin"};
  constexpr size_t kMaxPlaces = 100;
  std::istringstream words(search_path);
  for (std::string place; places.size() < kMaxPlaces && std::getline(words, place, ':');)
    places.push_back(place);
  return places;
}

void AddFileBehind(const std::string& path, std::set<std::string>* files) {
  const std::unique_ptr<char, void (*)(void*)> real(
      path.starts_with('/') ? realpath(path.c_str(), nullptr) : nullptr, free);
  if (real != nullptr)
    files->insert(real.get());
}

// The names, and files that they mean by way of a symbolic link: python3 is python3.11.
ExecNames NamesOf(const TargetRules& rules, const std::string& search_path) {
  const std::vector<std::string> places = PlacesOfPrograms(search_path);
  ExecNames names;
  std::set<std::string> files;
  for (const std::string& name : rules.names) {
    names.AddName(name);
    if (name.find('*') != std::string::npos)
      continue;
    AddFileBehind(name, &files);
    for (const std::string& place : places) {
      if (name.find('/') == std::string::npos)
        AddFileBehind(std::string(place).append("/").append(name), &files);
    }
  }
  for (const std::string& file : files)
    names.AddFile(file);
  return names;
}

// A program with the preload library, which finds its service by its environment.
Status ReportsTo(pid_t pid, const std::string& directory) {
  const std::string what =
      "cannot record process " + std::to_string(pid) + " from its start: ";
  if (EnvironmentVariable(pid, kSessionVariable))
    return Status(StatusCode::kUnavailable,
                  what + "the heap_profile that has started it records it");
  const std::optional<std::string> named = EnvironmentVariable(pid, kDirectoryVariable);
  if (named ? *named == directory : directory.starts_with("/run/"))
    return {};
  return Status(StatusCode::kUnavailable,
                what + "it reports to the heapprofd " +
                    (named ? "in " + *named : "of the system") +
                    "; ask that one, or attach to it with -p once it runs");
}

// A library without malloc's hooks cannot tell what is wanted if that is malloc's heap.
bool WillReport(const ClientsOf& clients, const Session& session) {
  return clients.can_be_woken &&
         (!session.config().heaps.IsMallocAlone() || clients.is_preloaded);
}

// Whoever attached would hang where we do not.
std::string MapsAreLate(pid_t pid) {
  return "cannot attach to process " + std::to_string(pid) +
         ": the kernel did not show its mappings in time, or lately those of another "
         "program of its user's; try again when none of them hangs";
}

bool IsGiven(const TargetRules& rules, pid_t pid) {
  return std::find(rules.pids.begin(), rules.pids.end(), pid) != rules.pids.end();
}

void NoteOthers(Session& session, size_t count, std::vector<std::string>* notes) {
  session.missed().set_others(count);
  if (count > 0)
    notes->push_back("cannot record " + std::to_string(count) +
                     (count == 1
                          ? " process of this name: it is another user's; run "
                          : " processes of this name: they are other users'; run ") +
                     "heap_profile as root");
}

// Whoever names a server may mean its workers as well, which it has started before.
void NoteWorkers(pid_t pid,
                 const std::vector<pid_t>& descendants,
                 const TargetRules& rules,
                 std::vector<std::string>* notes) {
  constexpr size_t kMaxNamed = 8;
  const std::string program = DescribeProcess(pid).executable;
  std::string ids;
  size_t count = 0;
  for (const pid_t descendant : descendants) {
    const ProcessDescription process = DescribeProcess(descendant);
    if (program.empty() || process.executable != program || IsNamedBy(rules, process))
      continue;
    if (++count <= kMaxNamed)
      ids += "," + std::to_string(descendant);
  }
  if (count > 0)
    notes->push_back(
        "cannot record what process " + std::to_string(pid) +
        " has started before: " + std::to_string(count) +
        (count == 1 ? " process of its program runs" : " processes of its program run") +
        " already, and only those that it starts from now on are followed; name them, "
        "too, with -p " +
        std::to_string(pid) + ids + (count > kMaxNamed ? ",..." : "") + ", or all by -n");
}

bool Attach(Session& session,
            pid_t pid,
            const AttachPolicy& policy,
            std::vector<std::string>* notes) {
  if (session.targets().IsProfiling(pid))
    return true;
  const std::optional<ClientsOf> clients = FindClients(pid, policy.wake_page);
  if (!clients) {
    notes->push_back(MapsAreLate(pid));
    session.missed().NoteFailed();
    return false;
  }
  if (WillReport(*clients, session)) {
    session.missed().NoteAsleep();
    return true;
  }
  if (policy.is_taken(pid)) {
    session.missed().NoteTaken(DescribeProcess(pid));
    return true;
  }
  const bool is_given = IsGiven(session.config().targets, pid);
  const std::vector<pid_t> before = session.families().LeaveDescendantsOf(pid);
  const Status status = session.attached().Attach(pid);
  if (status.ok() && is_given)
    NoteWorkers(pid, before, session.config().targets, notes);
  // Of the processes of a name some end meanwhile.
  if (!status.ok() && (is_given || status.code() != StatusCode::kNotFound)) {
    notes->push_back(status.message());
    session.missed().NoteFailed();
  }
  return status.ok();
}

}  // namespace

Status AttachToRunning(Session& session,
                       const AttachPolicy& policy,
                       std::vector<std::string>* notes) {
  const TargetRules& rules = session.config().targets;
  if (rules.no_running)
    return {};
  size_t wanted = 0;
  size_t recorded = 0;
  size_t others = 0;
  // Whoever is recorded already must not wait for all the others.
  const auto serve = [&session, &policy] {
    session.Serve();
    policy.between();
  };
  const std::vector<pid_t> running = FindRunning(rules, serve);
  for (const pid_t pid : running)
    session.attached().IsSettled(pid);  // those that are not wait all at once
  for (const pid_t pid : running) {
    if (rules.min_anonymous_kib != 0 && AnonymousKib(pid) < rules.min_anonymous_kib)
      continue;
    if (!IsGiven(rules, pid) && IsOthers(pid)) {
      ++others;
      continue;
    }
    ++wanted;
    recorded += Attach(session, pid, policy, notes) ? 1u : 0u;
    serve();
  }
  NoteOthers(session, others, notes);
  const bool may_come = rules.all || !rules.names.empty();
  if (wanted > 0 && recorded == 0 && !may_come && !notes->empty())
    return Status(StatusCode::kUnavailable, notes->front());
  return {};
}

bool AttachToNew(Session& session, pid_t pid, const AttachPolicy& policy) {
  if (session.targets().IsProfiling(pid))
    return true;
  const std::optional<ClientsOf> clients = FindClients(pid, policy.wake_page);
  if (!clients || WillReport(*clients, session))
    return clients.has_value();
  if (policy.is_taken(pid)) {
    session.missed().NoteTaken(DescribeProcess(pid));
    return true;
  }
  const Status status = session.attached().PutClientIn(pid);
  if (status.code() == StatusCode::kTryAgain)
    return false;
  if (!status.ok() && status.code() != StatusCode::kNotFound)
    session.NoteProblem(status.message());
  return true;
}

bool CatchStarting(Session& session,
                   const AttachPolicy& policy,
                   std::vector<std::string>* notes) {
  const TargetRules& rules = session.config().targets;
  if (rules.no_startup || rules.names.empty())
    return true;
  TargetRules by_name = rules;
  by_name.all = false;
  by_name.pids.clear();
  ExecWatcher::Filter filter{
      .names = NamesOf(by_name, policy.search_path),
      .matches =
          [by_name](pid_t pid, const std::string& path) {
            return IsNameOf(by_name, path) || IsNamedBy(by_name, DescribeProcess(pid));
          },
      .reports_to_us =
          [directory = policy.directory](pid_t pid) { return ReportsTo(pid, directory); },
      .is_malloc_alone = session.config().heaps.IsMallocAlone()};
  const Status status = session.starts().Begin(std::move(filter), policy.make_watcher);
  if (!status.ok())
    notes->push_back(status.message());
  return status.ok();
}

}  // namespace heapprofd
