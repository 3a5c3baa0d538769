#include "profile/deobfuscation.h"

#include <algorithm>
#include <set>
#include <utility>

#include "profile/java_classes.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxInlined = 100;  // longer chains are cut

bool Covers(const ObfuscatedMember& method, uint32_t line) {
  return method.obfuscated_line_start != 0 && method.obfuscated_line_start <= line &&
         line <= method.obfuscated_line_end;
}

// A range of one source line stands for the line of a call that was inlined.
uint32_t OriginalLine(const ObfuscatedMember& method, uint32_t line) {
  if (method.source_line_start == 0)
    return line;
  if (method.source_line_end <= method.source_line_start)
    return method.source_line_start;
  const uint32_t distance = line - method.obfuscated_line_start;
  return method.source_line_start +
         std::min(distance, method.source_line_end - method.source_line_start);
}

bool IsSameRange(const ObfuscatedMember& a, const ObfuscatedMember& b) {
  return a.obfuscated_line_start == b.obfuscated_line_start &&
         a.obfuscated_line_end == b.obfuscated_line_end;
}

// Entries for the same lines, one after the other, are one inlined in the other.
std::vector<const ObfuscatedMember*> OutermostOf(
    const std::vector<ObfuscatedMember>& methods) {
  std::vector<const ObfuscatedMember*> outermost;
  for (size_t i = 0; i < methods.size(); ++i) {
    const bool is_inlined = methods[i].obfuscated_line_start != 0 &&
                            i + 1 < methods.size() &&
                            IsSameRange(methods[i], methods[i + 1]);
    if (!is_inlined)
      outermost.push_back(&methods[i]);
  }
  return outermost;
}

}  // namespace

void Deobfuscator::Add(DeobfuscationMap map) {
  Map& added = maps_.emplace_back();
  added.package = std::move(map.package_name);
  for (ObfuscatedClass& source : map.classes) {
    Class& target = added.classes[std::move(source.obfuscated_name)];
    target.name = std::move(source.deobfuscated_name);
    for (ObfuscatedMember& method : source.methods) {
      std::vector<ObfuscatedMember>& overloads = target.methods[method.obfuscated_name];
      overloads.push_back(std::move(method));
    }
    for (ObfuscatedMember& member : source.fields)
      target.fields.try_emplace(std::move(member.obfuscated_name),
                                std::move(member.deobfuscated_name));
  }
}

const Deobfuscator::Class* Deobfuscator::Find(std::string_view package,
                                              std::string_view name) const {
  // A later map may correct an earlier one.
  for (auto map = maps_.rbegin(); map != maps_.rend(); ++map) {
    if (!package.empty() && !map->package.empty() && map->package != package)
      continue;
    const auto found = map->classes.find(std::string(name));
    if (found != map->classes.end())
      return &found->second;
  }
  return nullptr;
}

const std::vector<ObfuscatedMember>* Deobfuscator::FindOverloads(
    std::string_view package, std::string_view qualified_name) const {
  const size_t dot = qualified_name.rfind('.');
  if (dot == std::string_view::npos)
    return nullptr;
  const Class* const owner = Find(package, qualified_name.substr(0, dot));
  if (owner == nullptr)
    return nullptr;
  const auto found = owner->methods.find(std::string(qualified_name.substr(dot + 1)));
  return found == owner->methods.end() ? nullptr : &found->second;
}

bool Deobfuscator::IsOutline(std::string_view package,
                             std::string_view qualified_name) const {
  const auto* overloads = FindOverloads(package, qualified_name);
  return overloads != nullptr &&
         std::ranges::all_of(*overloads, &ObfuscatedMember::is_outline);
}

uint32_t Deobfuscator::LineAtOutline(std::string_view package,
                                     const Position& call,
                                     const Position& outline) const {
  const auto* overloads = FindOverloads(package, call.qualified_name);
  if (overloads == nullptr)
    return 0;
  for (const ObfuscatedMember& method : *overloads) {
    if (!Covers(method, call.line))
      continue;
    for (const OutlineCall& outlined : method.outline_calls) {
      const auto line = std::ranges::find(outlined.lines, outline.line,
                                          [](const auto& pair) { return pair.first; });
      if (outlined.outline == outline.qualified_name && line != outlined.lines.end())
        return line->second;
    }
  }
  return 0;
}

Deobfuscator::Answer Deobfuscator::FindMethod(std::string_view package,
                                              std::string_view qualified_name,
                                              uint32_t line) const {
  Answer answer;
  const size_t dot = qualified_name.rfind('.');
  if (dot == std::string_view::npos)
    return answer;
  const Class* const owner = Find(package, qualified_name.substr(0, dot));
  if (owner == nullptr)
    return answer;
  const std::string method(qualified_name.substr(dot + 1));
  const auto found = owner->methods.find(method);
  if (found == owner->methods.end()) {  // its name was kept
    answer.name = owner->name + "." + method;
    return answer;
  }
  if (line != 0) {
    const ObfuscatedMember* first = nullptr;
    for (const ObfuscatedMember& candidate : found->second) {
      if (!Covers(candidate, line) || answer.inlined.size() >= kMaxInlined ||
          (first != nullptr && !IsSameRange(*first, candidate)))
        continue;
      first = &candidate;
      answer.inlined.push_back(
          {candidate.deobfuscated_name, OriginalLine(candidate, line)});
    }
    if (!answer.inlined.empty()) {
      answer.name = answer.inlined.back().name;
      return answer;
    }
  }
  std::set<std::string_view> names;
  for (const ObfuscatedMember* candidate : OutermostOf(found->second))
    names.insert(candidate->deobfuscated_name);
  for (const std::string_view name : names)
    answer.name.append(answer.name.empty() ? "" : " | ").append(name);
  return answer;
}

std::string Deobfuscator::FindClass(std::string_view package,
                                    std::string_view name) const {
  const std::string_view described = DescribedClass(name);
  const bool is_class_object = !described.empty();
  if (is_class_object)
    name = described;
  std::string_view element = name;
  while (element.ends_with("[]"))
    element.remove_suffix(2);
  const Class* const found = Find(package, element);
  if (found == nullptr)
    return "";
  const std::string full = found->name + std::string(name.substr(element.size()));
  return is_class_object ? ClassOfClass(full) : full;
}

std::string Deobfuscator::FindField(std::string_view package,
                                    std::string_view qualified_name) const {
  const size_t dot = qualified_name.rfind('.');
  if (dot == std::string_view::npos)
    return "";
  const Class* const owner = Find(package, qualified_name.substr(0, dot));
  if (owner == nullptr)
    return "";
  const auto field = owner->fields.find(std::string(qualified_name.substr(dot + 1)));
  if (field == owner->fields.end())
    return "";
  const bool is_of_another_class = field->second.find('.') != std::string::npos;
  return is_of_another_class ? field->second : owner->name + "." + field->second;
}

}  // namespace heapprofd
