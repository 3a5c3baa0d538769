#include "cli/view/embedded_source.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/view/source_lines.h"
#include "query/dump_values.h"

namespace heapprofd {
namespace {

using nlohmann::json;

constexpr size_t kMostHeaps = 16;
constexpr size_t kMostFiles = 50;  // of a moment and a value
constexpr size_t kMostTextBytes = size_t{8} << 20;

// Who makes a page for others must not hand them other files that a trace names.
bool IsNamedAsSource(std::string_view path) {
  constexpr std::string_view kEndings[] = {
      ".C",     ".H",   ".S",   ".adb", ".ads", ".c",    ".c++", ".cc", ".cpp",
      ".cu",    ".cxx", ".d",   ".f",   ".f90", ".go",   ".h",   ".hh", ".hpp",
      ".hs",    ".hxx", ".inc", ".inl", ".ipp", ".java", ".js",  ".kt", ".l",
      ".m",     ".ml",  ".mm",  ".nim", ".pas", ".py",   ".pyx", ".rs", ".s",
      ".swift", ".tcc", ".ts",  ".y",   ".zig"};
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  return dot != std::string_view::npos && dot > 0 &&
         std::ranges::find(kEndings, name.substr(dot)) != std::end(kEndings);
}

constexpr const char* kPageViews[] = {"space", "objects", "alloc_space", "alloc_objects"};

class SourceAnswers {
 public:
  explicit SourceAnswers(TraceDatabase& database)
      : trace_(database.trace()), cancelled_(database.cancel_flag()) {}

  Status Add(uint32_t dump, bool is_peak, const std::string& view) {
    HPD_TRY_ASSIGN(
        const SumsByFile sums,
        SumByLine(trace_, is_peak ? PeakValuesAt(trace_, dump) : ValuesAt(trace_, dump),
                  *ParseView(view), cancelled_));
    const std::string moment = "dump=" + std::to_string(dump) +
                               "&peak=" + (is_peak ? "1" : "0") + "&view=" + view;
    json sources = SourcesJson(trace_, sums, kMostFiles);
    for (const json& file : sources["files"]) {
      const auto id = file["id"].get<StringId>();
      json answer = SourceJson(trace_, *sums.find(id));
      AddText(id, &answer);
      answers_["source?id=" + std::to_string(id) + "&" + moment] = std::move(answer);
    }
    answers_["sources?" + moment] = std::move(sources);
    return {};
  }

  // Texts of a trace, and of files, may hold any bytes.
  std::string Take() {
    const json all = {{"answers", std::move(answers_)}, {"texts", std::move(texts_)}};
    return all.dump(-1, ' ', false, json::error_handler_t::replace);
  }

 private:
  struct Text {
    size_t index = 0;
    bool is_cut = false;
    std::string reason = {};  // why there is none
  };

  void AddText(StringId file, json* answer) {
    const auto [known, is_new] = known_.try_emplace(file);
    Text& text = known->second;
    if (is_new)
      Read(std::string(trace_.Text(file)), &text);
    if (!text.reason.empty()) {
      (*answer)["reason"] = text.reason;
      return;
    }
    (*answer)["text"] = text.index;
    (*answer)["is_cut"] = text.is_cut;
  }

  void Read(const std::string& path, Text* text) {
    if (!IsNamedAsSource(path)) {
      text->reason = "cannot embed " + path + ": its name is not one of source code";
      return;
    }
    const Result<SourceText> read = ReadSource(path);
    if (!read.ok()) {
      text->reason = read.status().message();
      return;
    }
    size_t bytes = 0;
    for (const std::string& line : read.value().lines)
      bytes += line.size() + 1;
    if (bytes > kMostTextBytes - bytes_) {
      text->reason = "cannot embed " + path +
                     ": there are 8 MiB of source code already; heap_profile view has it";
      return;
    }
    bytes_ += bytes;
    text->index = texts_.size();
    text->is_cut = read.value().is_cut;
    texts_.push_back(read.value().lines);
  }

  const ImportedTrace& trace_;
  const CancelFlag& cancelled_;
  json answers_ = json::object();
  json texts_ = json::array();
  std::map<StringId, Text> known_;
  size_t bytes_ = 0;  // of texts_
};

// The last dump of each heap; those that come last, where there are many.
std::vector<uint32_t> EndsOf(const ImportedTrace& trace) {
  std::map<std::pair<uint32_t, StringId>, uint32_t> last;
  for (uint32_t i = 0; i < trace.dumps.size(); ++i)
    last[{trace.dumps[i].upid, trace.dumps[i].heap_name}] = i;
  std::vector<uint32_t> ends;
  ends.reserve(last.size());
  for (const auto& [heap, dump] : last)
    ends.push_back(dump);
  std::sort(ends.begin(), ends.end(), std::greater<>());
  ends.resize(std::min(ends.size(), kMostHeaps));
  return ends;
}

}  // namespace

Result<std::string> EmbeddedSource(TraceDatabase& database) {
  HPD_TRY(database.UseCallsites());
  SourceAnswers answers(database);
  for (const uint32_t dump : EndsOf(database.trace())) {
    for (const std::string view : kPageViews) {
      HPD_TRY(answers.Add(dump, /*is_peak=*/false, view));
      // What was allocated is not known of the peak.
      if (!view.starts_with("alloc"))
        HPD_TRY(answers.Add(dump, /*is_peak=*/true, view));
    }
  }
  return answers.Take();
}

}  // namespace heapprofd
