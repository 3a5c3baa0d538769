#include "engine/target_rules.h"

#include <fnmatch.h>

#include <algorithm>

#include "base/text.h"

namespace heapprofd {
namespace {

bool IsPattern(const std::string& name) {
  return name.find('*') != std::string::npos;
}

bool MatchesName(const std::string& name, const std::string& path) {
  if (path.empty())
    return false;
  if (!IsPattern(name))
    return NormalizedName(name) == NormalizedName(path);
  const std::string subject(name[0] == '/' ? path : FileName(path));
  return fnmatch(name.c_str(), subject.c_str(), FNM_NOESCAPE) == 0;
}

}  // namespace

bool IsNamedBy(const TargetRules& rules, const ProcessDescription& process) {
  if (rules.all ||
      std::find(rules.pids.begin(), rules.pids.end(), process.pid) != rules.pids.end())
    return true;
  const std::string argv0 = process.cmdline.empty() ? "" : process.cmdline[0];
  return IsNameOf(rules, argv0) || IsNameOf(rules, process.executable) ||
         IsNameOf(rules, process.comm);
}

bool IsNameOf(const TargetRules& rules, const std::string& path) {
  return std::any_of(rules.names.begin(), rules.names.end(),
                     [&](const std::string& name) { return MatchesName(name, path); });
}

}  // namespace heapprofd
