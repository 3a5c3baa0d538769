#include "symbolize/proguard_map.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

constexpr std::string_view kArrow = " -> ";

// R8's mark behind a method that it made from code that several methods share.
constexpr std::string_view kOutlineComment = R"("id":"com.android.tools.r8.outline")";
constexpr std::string_view kOutlineMark = " [outline]";

struct Lines {
  uint32_t start = 0;
  uint32_t end = 0;
};

std::optional<uint32_t> ParseNumber(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    return std::nullopt;
  return value;
}

// "1:3:" in front of a method, removed from `*text`; one number stands for both.
Lines TakePrefix(std::string_view* text) {
  Lines lines;
  const size_t first = text->find(':');
  if (first == std::string_view::npos)
    return lines;
  const std::optional<uint32_t> start = ParseNumber(text->substr(0, first));
  if (!start)
    return lines;
  lines = {*start, *start};
  text->remove_prefix(first + 1);
  const size_t second = text->find(':');
  const std::optional<uint32_t> end = second == std::string_view::npos
                                          ? std::nullopt
                                          : ParseNumber(text->substr(0, second));
  if (end) {
    lines.end = *end;
    text->remove_prefix(second + 1);
  }
  return lines;
}

// ":17:19" behind the arguments; nothing if there is none. None: it is something else.
std::optional<Lines> ParseSuffix(std::string_view text) {
  if (text.empty())
    return Lines();
  if (text[0] != ':')
    return std::nullopt;
  text.remove_prefix(1);
  const size_t colon = text.find(':');
  const std::optional<uint32_t> start = ParseNumber(text.substr(0, colon));
  if (!start)
    return std::nullopt;
  if (colon == std::string_view::npos)
    return Lines{*start, *start};
  const std::optional<uint32_t> end = ParseNumber(text.substr(colon + 1));
  if (!end)
    return std::nullopt;
  return Lines{*start, *end};
}

class Parser {
 public:
  explicit Parser(const std::string& package) { result_.map.package_name = package; }

  void ParseLine(std::string_view line) {
    ++number_;
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos)
      return;
    const std::string_view text = line.substr(begin);
    if (text[0] == '#')
      ParseComment(text);
    else if (begin == 0)
      ParseClass(text);
    else
      ParseMember(text);
  }

  ProguardMap Take() { return std::move(result_); }

 private:
  void Skip(std::string_view problem) {
    if (++result_.skipped_lines == 1)
      result_.first_problem =
          "line " + std::to_string(number_) + ": " + std::string(problem);
  }

  void ParseComment(std::string_view text) {
    if (method_ == nullptr || text.find(kOutlineComment) == std::string_view::npos ||
        method_->deobfuscated_name.ends_with(kOutlineMark))
      return;
    method_->deobfuscated_name += kOutlineMark;
  }

  void ParseClass(std::string_view text) {
    class_ = nullptr;
    method_ = nullptr;
    const size_t arrow = text.find(kArrow);
    if (arrow == std::string_view::npos || arrow == 0 || !text.ends_with(':'))
      return Skip("it is neither a class nor a member of one");
    std::string_view name = text.substr(arrow + kArrow.size());
    name.remove_suffix(1);
    if (name.empty())
      return Skip("the class has no obfuscated name");
    const auto [entry, is_new] =
        classes_.try_emplace(std::string(name), result_.map.classes.size());
    if (!is_new)
      return Skip("the class " + std::string(name) + " is there already");
    class_ = &result_.map.classes.emplace_back();
    class_->obfuscated_name = name;
    class_->deobfuscated_name = text.substr(0, arrow);
    fields_.clear();
  }

  void ParseMember(std::string_view text) {
    method_ = nullptr;
    if (class_ == nullptr)
      return Skip("a member stands in front of its class");
    const size_t arrow = text.rfind(kArrow);
    if (arrow == std::string_view::npos)
      return Skip("the member has no obfuscated name");
    const std::string_view obfuscated = text.substr(arrow + kArrow.size());
    const std::string_view source = text.substr(0, arrow);
    if (obfuscated.empty())
      return Skip("the member has no obfuscated name");
    if (source.find('(') != std::string_view::npos)
      ParseMethod(source, obfuscated);
    else
      ParseField(source, obfuscated);
  }

  void ParseField(std::string_view source, std::string_view obfuscated) {
    const size_t blank = source.rfind(' ');
    if (blank == std::string_view::npos || blank + 1 == source.size())
      return Skip("the field has no type");
    const std::string_view name = source.substr(blank + 1);
    const auto [entry, is_new] = fields_.try_emplace(std::string(obfuscated), name);
    if (!is_new) {
      if (entry->second != name)
        Skip("the field " + std::string(obfuscated) + " has another name already");
      return;
    }
    ObfuscatedMember& field = class_->fields.emplace_back();
    field.obfuscated_name = obfuscated;
    field.deobfuscated_name = name;
  }

  void ParseMethod(std::string_view source, std::string_view obfuscated) {
    const Lines lines = TakePrefix(&source);
    const size_t open = source.find('(');
    const size_t close = source.rfind(')');
    const size_t blank = source.substr(0, open).rfind(' ');
    if (close == std::string_view::npos || close < open ||
        blank == std::string_view::npos)
      return Skip("the method has no result type or no arguments");
    const std::string_view name = source.substr(blank + 1, open - blank - 1);
    std::optional<Lines> source_lines = ParseSuffix(source.substr(close + 1));
    if (name.empty() || !source_lines)
      return Skip("what stands around the method's arguments is no name or no line");
    if (source_lines->start == 0)
      source_lines = lines;
    method_ = &class_->methods.emplace_back();
    method_->obfuscated_name = obfuscated;
    method_->deobfuscated_name =
        name.find('.') != std::string_view::npos
            ? std::string(name)
            : class_->deobfuscated_name + "." + std::string(name);
    method_->obfuscated_line_start = lines.start;
    method_->obfuscated_line_end = lines.end;
    method_->source_line_start = source_lines->start;
    method_->source_line_end = source_lines->end;
  }

  ProguardMap result_;
  uint64_t number_ = 0;
  std::unordered_map<std::string, size_t> classes_;
  ObfuscatedClass* class_ = nullptr;                     // the last in result_
  ObfuscatedMember* method_ = nullptr;                   // the last of class_
  std::unordered_map<std::string, std::string> fields_;  // of class_
};

Result<std::string> ReadFile(const std::string& path) {
  constexpr size_t kMaxBytes = size_t{2} << 30;
  constexpr size_t kStep = size_t{1} << 20;
  ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid())
    return Status::FromErrno("cannot open mapping file " + path, errno);
  std::string text;
  while (text.size() < kMaxBytes) {
    const size_t old_size = text.size();
    text.resize(old_size + kStep);
    const ssize_t count = read(fd.get(), text.data() + old_size, kStep);
    text.resize(old_size + static_cast<size_t>(count > 0 ? count : 0));
    if (count < 0 && errno != EINTR)
      return Status::FromErrno("cannot read mapping file " + path, errno);
    if (count == 0)
      return text;
  }
  return Status(StatusCode::kUnavailable,
                "cannot read mapping file " + path + ": it is larger than 2 GiB");
}

}  // namespace

Result<ProguardMap> ParseProguardMap(std::string_view text,
                                     const std::string& name,
                                     const std::string& package) {
  Parser parser(package);
  while (!text.empty()) {
    const size_t end = text.find('\n');
    parser.ParseLine(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  ProguardMap result = parser.Take();
  if (result.map.classes.empty())
    return Status(StatusCode::kCorrupt,
                  "cannot read mapping file " + name + ": it names no class" +
                      (result.first_problem.empty() ? "" : ": " + result.first_problem) +
                      "; give it the mapping.txt of ProGuard or R8");
  return result;
}

Result<std::vector<ProguardSource>> ParseProguardSources(std::string_view text) {
  std::vector<ProguardSource> sources;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(':'));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const size_t equals = item.find('=');
    ProguardSource source;
    if (equals != std::string_view::npos)
      source.package = item.substr(0, equals);
    source.path = item.substr(equals == std::string_view::npos ? 0 : equals + 1);
    if (source.path.empty())
      return Status(StatusCode::kInvalidArgument,
                    "cannot use PERFETTO_PROGUARD_MAP: \"" + std::string(item) +
                        "\" names no file; its form is package=file[:package=file...]");
    sources.push_back(std::move(source));
  }
  return sources;
}

Result<ProguardMap> ReadProguardMap(const ProguardSource& source) {
  HPD_TRY_ASSIGN(const std::string text, ReadFile(source.path));
  return ParseProguardMap(text, source.path, source.package);
}

}  // namespace heapprofd
