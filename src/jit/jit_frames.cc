#include "jit/jit_frames.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/files/foreign_file.h"
#include "jit/jit_names.h"

namespace heapprofd {
namespace {

bool IsJitdump(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
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

// A file as the process would open it: links inside its root stay there.
ScopedFd OpenInRoot(const JitProcess& process, const std::string& path) {
  ForeignRequest request;
  request.paths = {path};
  request.root = process.root_fd;
  request.user = process.user;
  ForeignFile file = OpenForeign(request, kOwnPatienceNs);
  const bool is_theirs = file.owner == process.uid || file.owner == 0;
  return is_theirs ? std::move(file.fd) : ScopedFd();
}

void ReadFiles(const TargetProfile& profile, const JitProcess& process, JitNames& names) {
  for (const pid_t pid : process.pids) {
    const ScopedFd fd = OpenInRoot(process, "/tmp/perf-" + std::to_string(pid) + ".map");
    if (!fd.valid())
      continue;
    names.ReadPerfMap(fd.get());
    break;
  }
  // A process maps a page of its jitdump, so that others know its path.
  std::string_view last;
  for (const Mapping& mapping : profile.mappings) {
    if (!IsJitdump(mapping.path) || mapping.path == last)
      continue;
    last = mapping.path;
    if (const ScopedFd fd = OpenInRoot(process, mapping.path); fd.valid())
      names.ReadJitdump(fd.get());
  }
}

}  // namespace

JitReport NameJitFrames(TargetProfile& profile, const JitProcess& process) {
  JitReport report;
  std::vector<FrameId> frames;
  std::vector<uint64_t> pcs;
  for (FrameId id = 0; id < profile.frames.size(); ++id) {
    const Frame& frame = profile.frames[id];
    const bool is_mapped = frame.mapping < profile.mappings.size();
    const bool is_jit =
        is_mapped ? MayHoldJitCode(profile.mappings[frame.mapping]) : frame.rel_pc != 0;
    if (!is_jit || !frame.lines.empty())
      continue;
    frames.push_back(id);
    pcs.push_back(is_mapped ? ToAbsolute(profile.mappings[frame.mapping], frame.rel_pc)
                            : frame.rel_pc);
  }
  report.frames = frames.size();
  if (frames.empty())
    return report;
  JitNames names(pcs);
  ReadFiles(profile, process, names);
  for (size_t i = 0; i < frames.size(); ++i) {
    Frame& frame = profile.frames[frames[i]];
    if (auto line = names.Find(pcs[i])) {
      frame.lines.push_back(std::move(*line));
      continue;
    }
    ++report.unnamed_frames;
    if (std::ranges::find(report.mappings, frame.mapping) == report.mappings.end())
      report.mappings.push_back(frame.mapping);
  }
  return report;
}

}  // namespace heapprofd
