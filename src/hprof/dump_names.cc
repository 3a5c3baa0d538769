#include "hprof/dump_names.h"

#include <algorithm>
#include <cstdio>

#include "base/utf8.h"
#include "hprof/format.h"
#include "profile/java_classes.h"

namespace heapprofd::hprof {
namespace {

constexpr size_t kMaxFrameText = 1000;    // a hostile file's names may be longer
constexpr size_t kStackHeaderBytes = 12;  // numbers of stack and thread, count of frames

const char* PrimitiveName(char letter) {
  switch (letter) {
    case 'Z':
      return "boolean";
    case 'C':
      return "char";
    case 'F':
      return "float";
    case 'D':
      return "double";
    case 'B':
      return "byte";
    case 'S':
      return "short";
    case 'I':
      return "int";
    case 'J':
      return "long";
    default:
      return nullptr;
  }
}

template <typename Value>
Value Find(const std::vector<std::pair<uint64_t, Value>>& sorted, uint64_t key) {
  const auto found =
      std::lower_bound(sorted.begin(), sorted.end(), key,
                       [](const auto& entry, uint64_t k) { return entry.first < k; });
  return found != sorted.end() && found->first == key ? found->second : Value{};
}

template <typename Value>
void SortByFirst(std::vector<std::pair<uint64_t, Value>>* entries) {
  std::stable_sort(entries->begin(), entries->end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
}

}  // namespace

std::string HexOf(uint64_t number) {
  char text[24];
  snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(number));
  return text;
}

std::string JavaName(std::string_view name) {
  size_t dimensions = 0;
  while (dimensions < name.size() && name[dimensions] == '[')
    ++dimensions;
  std::string_view element = name.substr(dimensions);
  std::string result;
  if (dimensions > 0 && element.size() > 2 && element.front() == 'L' &&
      element.back() == ';')
    element = element.substr(1, element.size() - 2);
  if (dimensions > 0 && element.size() == 1 && PrimitiveName(element[0]) != nullptr)
    result = PrimitiveName(element[0]);
  else
    result = element;
  std::replace(result.begin(), result.end(), '/', '.');
  if (const size_t plus = result.rfind("+0x"); plus != std::string::npos)
    result[plus] = '/';  // a hidden class: what follows is no part of its name
  for (size_t i = 0; i < dimensions; ++i)
    result += "[]";
  return result;
}

void DumpNames::Read(uint8_t tag, std::string_view record) {
  const auto* body = reinterpret_cast<const uint8_t*>(record.data());
  if (tag == kUtf8 && record.size() >= id_bytes_)
    strings_.emplace_back(GetId(body, id_bytes_),
                          CutUtf8(record.substr(id_bytes_), kMostJavaNameBytes));
  if (tag == kLoadClass && record.size() >= 8 + 2 * id_bytes_) {
    class_names_.emplace_back(GetId(body + 4, id_bytes_),
                              GetId(body + 8 + id_bytes_, id_bytes_));
    class_serials_.emplace_back(Get32(body), GetId(body + 4, id_bytes_));
  }
  if (tag == kStackFrame && record.size() >= 4 * id_bytes_ + 8)
    frames_.emplace_back(GetId(body, id_bytes_), record);
  if (tag == kStackTrace && record.size() >= kStackHeaderBytes && Get32(body + 4) != 0)
    stacks_.emplace_back(Get32(body + 4), record);
}

void DumpNames::Sort() {
  SortByFirst(&strings_);
  SortByFirst(&class_names_);
  SortByFirst(&class_serials_);
  SortByFirst(&frames_);
  SortByFirst(&stacks_);
}

std::string_view DumpNames::StringOf(uint64_t id) const {
  return Find(strings_, id);
}

std::string DumpNames::ClassName(uint64_t class_id) const {
  const std::string_view name = StringOf(Find(class_names_, class_id));
  return name.empty() ? "class " + HexOf(class_id) : JavaName(name);
}

bool DumpNames::HasName(uint64_t class_id) const {
  return !StringOf(Find(class_names_, class_id)).empty();
}

std::vector<uint64_t> DumpNames::StackOf(uint32_t thread) const {
  const std::string_view stack = Find(stacks_, thread);
  std::vector<uint64_t> frames;
  if (stack.empty())
    return frames;
  const auto* at = reinterpret_cast<const uint8_t*>(stack.data());
  const uint64_t count =
      std::min<uint64_t>(Get32(at + 8), (stack.size() - kStackHeaderBytes) / id_bytes_);
  for (uint64_t i = 0; i < count; ++i)
    frames.push_back(GetId(at + kStackHeaderBytes + i * id_bytes_, id_bytes_));
  return frames;
}

std::string DumpNames::DescribeFrame(uint64_t id) const {
  constexpr int32_t kNativeMethod = -3;
  const std::string_view frame = Find(frames_, id);
  if (frame.empty())
    return "(unknown)";
  const auto* at = reinterpret_cast<const uint8_t*>(frame.data());
  const auto text_at = [&](uint32_t place) {
    return std::string(StringOf(GetId(at + size_t{place} * id_bytes_, id_bytes_))
                           .substr(0, kMaxFrameText));
  };
  const auto line = static_cast<int32_t>(Get32(at + size_t{4} * id_bytes_ + 4));
  std::string place = text_at(3);
  if (line == kNativeMethod)
    place = "Native Method";
  else if (place.empty())
    place = "Unknown Source";
  else if (line > 0)
    place += ":" + std::to_string(line);
  const std::string owner =
      ClassName(Find(class_serials_, Get32(at + size_t{4} * id_bytes_)));
  return owner.substr(0, kMaxFrameText) + "." + text_at(1) + "(" + place + ")";
}

}  // namespace heapprofd::hprof
