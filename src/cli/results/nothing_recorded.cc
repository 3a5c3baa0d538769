#include "cli/results/nothing_recorded.h"

#include <algorithm>

#include "base/format.h"
#include "cli/results/heap_notes.h"
#include "cli/results/unrecorded_text.h"
#include "record/no_calls.h"

namespace heapprofd {
namespace {

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Of processes that a session would have woken.
std::string NeverWoke(size_t count) {
  const std::string then = "; record for longer, or while work is done";
  if (count == 1)
    return "1 process that was asked for has the profiling library in it and never "
           "reported, which it does when it allocates" +
           then;
  return std::to_string(count) +
         " processes that were asked for have the profiling library in them and never "
         "reported, which they do when they allocate" +
         then;
}

// None of the processes that were asked for came.
std::string ReasonWithoutTargets(const TraceRecording& recording, bool has_program) {
  for (const std::unique_ptr<Session>& session : recording.sessions()) {
    if (!session->missed().taken().empty())
      return "another session profiles pid " +
             std::to_string(session->missed().taken()[0]->process.pid) +
             " already; wait for its end, or stop it";
  }
  const std::vector<std::string> programs = ProgramWarnings(recording);
  if (!programs.empty())
    return programs[0];
  if (std::ranges::any_of(recording.sessions(), [](const auto& session) {
        return session->missed().has_failed() || !session->attach_problems().empty();
      }))
    return "no process that was asked for could be recorded; the lines above say why";
  for (const std::unique_ptr<Session>& session : recording.sessions()) {
    if (session->missed().asleep() > 0)
      return NeverWoke(session->missed().asleep());
  }
  if (std::ranges::any_of(recording.sessions(), [](const auto& session) {
        return session->missed().others() > 0;
      }))
    return "the processes of this name are other users'; run heap_profile as root";
  const TargetRules& rules = recording.config().sessions[0].targets;
  if (rules.names.empty())
    return "none of the processes that were asked for has reported; heap_profile doctor "
           "-p PID looks at one";
  return "no process was found whose program file, argv[0] or command name is " +
         Listed(rules.names) + "; ps -e shows them, and -p PID attaches to one" +
         (has_program ? ""
                      : ". Of a program that starts meanwhile only the file counts, or a "
                        "symbolic link to it in PATH or given by its whole path");
}

// One that was recorded has no samples.
std::string ReasonOf(const TargetProfile& profile, const HeapSelection& heaps) {
  const std::vector<std::string> notes = HeapNotes(profile, heaps);
  if (!notes.empty())
    return notes[0];
  if (profile.heaps.empty() && heaps.heaps.empty() && !heaps.excluded.empty())
    return "the program has shown no other heap than those that --exclude-heaps leaves "
           "out";
  if (!profile.hooks_malloc && profile.heaps.size() == 1 &&
      profile.heaps[0].heap_name == kMallocHeapName)
    return "malloc cannot be seen in this process, which has only libheapprofd_client, "
           "and it has registered no heap; start it under heap_profile -- PROGRAM, or "
           "with LD_PRELOAD";
  if (profile.quality.lost_samples > 0)
    return FormatCounted(static_cast<double>(profile.quality.lost_samples), "sample",
                         "samples") +
           " did not fit into the buffer, and no other was taken; raise --shmem-size";
  uint64_t calls = profile.forked.alloc_calls;  // its own, and its forked children's
  uint64_t bytes = profile.forked.alloc_bytes;
  for (const HeapDump& dump : profile.heaps) {
    calls += dump.exact_alloc_calls;
    bytes += dump.exact_alloc_bytes;
  }
  if (calls == 0)
    return "";
  return "no sample was taken of " +
         FormatCounted(static_cast<double>(calls), "allocation", "allocations") +
         " with " + FormatBytes(static_cast<double>(bytes)) +
         "; use a smaller --interval (1 records everything)";
}

}  // namespace

std::vector<std::string> ProgramWarnings(const TraceRecording& recording) {
  std::vector<std::string> warnings;
  for (const std::unique_ptr<Session>& session : recording.sessions()) {
    for (const std::string& warning :
         UnrecordedWarnings(session->programs().Unrecorded()))
      warnings.push_back(warning);
  }
  return warnings;
}

std::string ReasonForNothing(const TraceRecording& recording,
                             const std::string& obstacle,
                             bool has_program) {
  if (!obstacle.empty())
    return obstacle;
  const std::vector<Target*> targets = recording.targets();
  if (targets.empty())
    return ReasonWithoutTargets(recording, has_program);
  for (const Target* target : targets) {
    std::string reason =
        ReasonOf(target->profile(), recording.config().sessions[0].heaps);
    if (!reason.empty())
      return reason;
  }
  const TargetProfile& first = targets[0]->profile();
  return NoCallsWords(first.from_startup, first.unhooked);
}

}  // namespace heapprofd
