#include "jit/jit_frames.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/files/foreign_file.h"
#include "base/text.h"
#include "jit/jit_names.h"
#include "symbolize/symbol_answers.h"
#include "symbolize/worker_pool.h"

namespace heapprofd {
namespace {

bool IsJitdump(std::string_view path) {
  const std::string_view name = FileName(path);
  return name.starts_with("jit-") && name.ends_with(".dump");
}

// Memory that compilers write code to: without a file, or with one that only lends its
// pages.
bool MayHoldJitCode(const Mapping& mapping) {
  const std::string_view path = mapping.path;
  for (const std::string_view prefix :
       {"//anon", "[anon", "[heap]", "[stack", "/memfd:", "/dev/zero", "/SYSV"}) {
    if (path.starts_with(prefix))
      return true;
  }
  return path.empty() || IsJitdump(path);
}

uint64_t ToAbsolute(const Mapping& mapping, uint64_t rel_pc) {
  return rel_pc - mapping.load_bias - mapping.exact_offset + mapping.start_offset +
         mapping.start;
}

// A file as the process would open it: links inside its root stay there. `late`: gets the
// path when it did not open in time.
ScopedFd OpenInRoot(const JitProcess& process,
                    const std::string& path,
                    std::string* late) {
  ForeignRequest request;
  request.paths = {path};
  request.root = process.root_fd;
  request.user = process.user;
  ForeignFile file = OpenForeign(request, process.patience_ns);
  if (file.is_late)
    *late = path;
  const bool is_theirs = file.owner == process.uid || file.owner == 0;
  return is_theirs ? std::move(file.fd) : ScopedFd();
}

// What compilers have left, open, in the order in which it is to be read.
struct JitFiles {
  std::vector<ScopedFd> perf_maps;
  std::vector<ScopedFd> jitdumps;
  std::string late;  // path of one that did not open in time

  bool empty() const { return perf_maps.empty() && jitdumps.empty(); }

  std::vector<int> fds() const {
    std::vector<int> fds;
    for (const auto* files : {&perf_maps, &jitdumps}) {
      for (const ScopedFd& file : *files)
        fds.push_back(file.get());
    }
    return fds;
  }
};

// A process maps a page of its jitdump, so that others know its path.
std::vector<std::string> JitdumpsOf(const CodeTable& code, const JitProcess& process) {
  std::vector<std::string> paths;
  const auto add = [&paths](std::string_view path) {
    if (IsJitdump(path) && std::ranges::find(paths, path) == paths.end())
      paths.emplace_back(path);
  };
  for (const Mapping& mapping : code.mappings)
    add(mapping.path);
  for (const std::string& path : process.late_files)
    add(path);
  return paths;
}

JitFiles OpenFiles(const CodeTable& code, const JitProcess& process) {
  constexpr size_t kMaxJitdumps = 16;  // each is a descriptor
  JitFiles files;
  for (const pid_t pid : process.pids) {
    ScopedFd fd =
        OpenInRoot(process, "/tmp/perf-" + std::to_string(pid) + ".map", &files.late);
    if (!fd.valid())
      continue;
    files.perf_maps.push_back(std::move(fd));
    break;
  }
  for (const std::string& path : JitdumpsOf(code, process)) {
    if (ScopedFd fd = OpenInRoot(process, path, &files.late); fd.valid())
      files.jitdumps.push_back(std::move(fd));
    if (files.jitdumps.size() == kMaxJitdumps)
      break;
  }
  return files;
}

// In a process without rights.
std::string NamesFrom(const JitFiles& files, const std::vector<uint64_t>& pcs) {
  JitNames names(pcs);
  for (const ScopedFd& file : files.perf_maps)
    names.ReadPerfMap(file.get());
  for (const ScopedFd& file : files.jitdumps)
    names.ReadJitdump(file.get());
  SymbolAnswers answers;
  for (const uint64_t pc : pcs) {
    const std::optional<SourceLine> line = names.Find(pc);
    if (!line)
      continue;
    const SymbolAnswers::Line texts{.function = answers.Intern(line->function),
                                    .system_name = answers.Intern(line->system_name),
                                    .file = answers.Intern(line->file),
                                    .line = line->line};
    answers.Add(pc, {&texts, 1});
  }
  std::string bytes;
  answers.EncodeTo(bytes);
  return bytes;
}

// Names of addresses, as far as there are any. `error`: why none could be read.
SymbolAnswers AskReader(const JitFiles& files,
                        const std::vector<uint64_t>& pcs,
                        int cancel_fd,
                        std::string* error) {
  std::optional<SymbolAnswers> answers;
  if (files.empty())
    return {};
  *error = "nobody waited for it";
  RunInWorkers(
      1, [&](size_t) { return NamesFrom(files, pcs); },
      [&](size_t, Result<std::string> result) {
        if (!result.ok())
          *error = result.status().message();
        else if (!(answers = SymbolAnswers::Decode(std::move(result).value())))
          *error = "the answer was damaged";
      },
      {.workers = 1,
       .cancel_fd = cancel_fd,
       .rights = WorkerRights::kNone,
       .kept_fds = files.fds()});
  if (!answers)
    return {};
  error->clear();
  return std::move(*answers);
}

}  // namespace

JitReport NameJitFrames(const CodeTable& code, const JitProcess& process, int cancel_fd) {
  JitReport report;
  std::vector<FrameId> frames;
  std::vector<uint64_t> pcs;
  for (FrameId id = 0; id < code.frames.size(); ++id) {
    const Frame& frame = code.frames[id];
    const bool is_mapped = frame.mapping < code.mappings.size();
    const bool is_jit =
        is_mapped ? MayHoldJitCode(code.mappings[frame.mapping]) : frame.rel_pc != 0;
    if (!is_jit || !frame.lines.empty())
      continue;
    frames.push_back(id);
    pcs.push_back(is_mapped ? ToAbsolute(code.mappings[frame.mapping], frame.rel_pc)
                            : frame.rel_pc);
  }
  report.frames = frames.size();
  if (frames.empty())
    return report;
  const JitFiles files = OpenFiles(code, process);
  const SymbolAnswers names = AskReader(files, pcs, cancel_fd, &report.error);
  if (report.error.empty() && !files.late.empty())
    report.error = files.late + " did not open in time";
  for (size_t i = 0; i < frames.size(); ++i) {
    Frame& frame = code.frames[frames[i]];
    if (const auto lines = names.Find(pcs[i])) {
      frame.lines = names.ToSourceLines(*lines);
      continue;
    }
    ++report.unnamed_frames;
    if (std::ranges::find(report.mappings, frame.mapping) == report.mappings.end())
      report.mappings.push_back(frame.mapping);
  }
  return report;
}

}  // namespace heapprofd
