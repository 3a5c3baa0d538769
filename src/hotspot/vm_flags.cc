#include "hotspot/vm_flags.h"

#include <vector>

#include "hotspot/attach_socket.h"

namespace heapprofd {
namespace {

constexpr char kPathFlag[] = "HeapDumpPath";
constexpr char kOutOfMemoryFlag[] = "HeapDumpOnOutOfMemoryError";
constexpr char kSet[] = "setflag";
constexpr char kPrint[] = "printflag";

using Questions = std::vector<AttachQuestion>;

// In the messenger. Gives the answers, a line each.
Result<std::string> AskAll(const Attachment& attachment, const Questions& questions) {
  std::string answers;
  std::string done;
  for (const AttachQuestion& question : questions) {
    std::string what = question.command == kSet ? "setting " : "reading ";
    what += question.first;
    attachment.sender.Tell(what + done);
    const Result<std::string> answer = AskMachine(attachment, question);
    if (!answer.ok())
      return Status(answer.status().code(),
                    what.append(": ").append(answer.status().message()).append(done));
    answers += answer.value() + '\n';
    if (question.command == kSet)
      done += "; " + question.first + " has been set";
  }
  return answers;
}

Result<std::string> Ask(const JavaProcess& process,
                        const Questions& questions,
                        const MachinePatience& patience) {
  constexpr int kNobodyStopsIt = -1;
  Result<std::string> answers = AskOnErrand(
      process, patience, kNobodyStopsIt,
      [&](const Attachment& attachment) { return AskAll(attachment, questions); });
  if (answers.ok())
    return answers;
  return Status(answers.status().code(), "cannot set flags of " + process.Description() +
                                             ": " + answers.status().message());
}

}  // namespace

Result<ArmedDump> ArmOutOfMemoryDump(const JavaProcess& process,
                                     const std::string& path,
                                     const MachinePatience& patience) {
  Questions questions = {{kPrint, kOutOfMemoryFlag}};
  if (!path.empty())
    questions.push_back({kSet, kPathFlag, path});
  questions.push_back({kSet, kOutOfMemoryFlag, "1"});
  questions.push_back({kPrint, kPathFlag});
  HPD_TRY_ASSIGN(const std::string answers, Ask(process, questions, patience));
  ArmedDump armed;
  armed.was_armed =
      answers.starts_with(std::string("-XX:+") + kOutOfMemoryFlag);  // "-XX:-": not
  const std::string key = std::string("-XX:") + kPathFlag + "=";     // "-XX:NAME=PATH"
  if (const size_t at = answers.rfind(key); at != std::string::npos) {
    armed.path = answers.substr(at + key.size());
    armed.path.resize(armed.path.find_last_not_of('\n') + 1);
  }
  return armed;
}

Status DisarmOutOfMemoryDump(const JavaProcess& process,
                             const MachinePatience& patience) {
  const Result<std::string> answer =
      Ask(process, {{kSet, kOutOfMemoryFlag, "0"}}, patience);
  return answer.ok() ? Status() : answer.status();
}

}  // namespace heapprofd
