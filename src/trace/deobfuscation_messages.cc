#include "trace/deobfuscation_messages.h"

#include <algorithm>

#include <protozero/pbf_writer.hpp>

#include "trace/limits.h"
#include "trace/message_reader.h"

namespace heapprofd {
namespace {

using protozero::pbf_writer;

constexpr std::string_view kDeduped = "[DEDUPED]";

// Field numbers of the three messages.
enum MapField : uint32_t { kPackage = 1, kVersion = 2, kClasses = 3 };

enum ClassField : uint32_t {
  kClassName = 1,
  kClassSource = 2,
  kFields = 3,
  kMethods = 4
};

enum MemberField : uint32_t {
  kMemberName = 1,
  kMemberSource = 2,
  kObfuscatedStart = 3,
  kObfuscatedEnd = 4,
  kSourceStart = 5,
  kSourceEnd = 6,
};

std::string MemberMessage(const ObfuscatedMember& member) {
  std::string message;
  pbf_writer writer(message);
  const std::string_view name = BoundedText(member.obfuscated_name);
  const std::string_view source = BoundedText(member.deobfuscated_name);
  writer.add_string(kMemberName, name.data(), name.size());
  writer.add_string(kMemberSource, source.data(), source.size());
  for (const auto& [field, line] :
       {std::pair(kObfuscatedStart, member.obfuscated_line_start),
        std::pair(kObfuscatedEnd, member.obfuscated_line_end),
        std::pair(kSourceStart, member.source_line_start),
        std::pair(kSourceEnd, member.source_line_end)}) {
    if (line != 0)
      writer.add_uint32(field, line);
  }
  return message;
}

// Classes, in as many messages as their size demands.
class MessageSplitter {
 public:
  explicit MessageSplitter(const DeobfuscationMap& map) : map_(map) { Begin(); }

  void Add(const ObfuscatedClass& source) {
    std::string message = ClassHeader(source);
    for (const auto& [field, members] :
         {std::pair(kFields, &source.fields), std::pair(kMethods, &source.methods)}) {
      for (const ObfuscatedMember& member : *members) {
        if (message.size() >= kPacketTarget / 2) {
          Append(message);
          message = ClassHeader(source);
        }
        pbf_writer(message).add_message(field, MemberMessage(member));
      }
    }
    Append(message);
  }

  std::vector<std::string> Take() { return std::move(messages_); }

 private:
  static std::string ClassHeader(const ObfuscatedClass& source) {
    std::string message;
    pbf_writer writer(message);
    const std::string_view name = BoundedText(source.obfuscated_name);
    const std::string_view original = BoundedText(source.deobfuscated_name);
    writer.add_string(kClassName, name.data(), name.size());
    writer.add_string(kClassSource, original.data(), original.size());
    return message;
  }

  void Begin() {
    pbf_writer writer(messages_.emplace_back());
    const std::string_view package = BoundedText(map_.package_name);
    writer.add_string(kPackage, package.data(), package.size());
    if (map_.version_code != 0)
      writer.add_int64(kVersion, map_.version_code);
  }

  void Append(const std::string& class_message) {
    if (messages_.back().size() + class_message.size() > kPacketTarget)
      Begin();
    pbf_writer(messages_.back()).add_message(kClasses, class_message);
  }

  const DeobfuscationMap& map_;
  std::vector<std::string> messages_;
};

ObfuscatedMember ReadMember(std::string_view message) {
  ObfuscatedMember member;
  MessageReader reader(message);
  while (reader.Next()) {
    switch (reader.field()) {
      case kMemberName:
        member.obfuscated_name = reader.Bytes();
        break;
      case kMemberSource:
        member.deobfuscated_name = reader.Bytes();
        break;
      case kObfuscatedStart:
        member.obfuscated_line_start = static_cast<uint32_t>(reader.Uint());
        break;
      case kObfuscatedEnd:
        member.obfuscated_line_end = static_cast<uint32_t>(reader.Uint());
        break;
      case kSourceStart:
        member.source_line_start = static_cast<uint32_t>(reader.Uint());
        break;
      case kSourceEnd:
        member.source_line_end = static_cast<uint32_t>(reader.Uint());
        break;
      default:
        break;
    }
  }
  return member;
}

ObfuscatedClass ReadClass(std::string_view message) {
  ObfuscatedClass result;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == kClassName)
      result.obfuscated_name = reader.Bytes();
    else if (reader.field() == kClassSource)
      result.deobfuscated_name = reader.Bytes();
    else if (reader.field() == kFields)
      result.fields.push_back(ReadMember(reader.Bytes()));
    else if (reader.field() == kMethods)
      result.methods.push_back(ReadMember(reader.Bytes()));
  }
  // Traces of older tools have names of methods without their class.
  for (ObfuscatedMember& method : result.methods) {
    if (method.deobfuscated_name.find('.') == std::string::npos)
      method.deobfuscated_name =
          result.deobfuscated_name + "." + method.deobfuscated_name;
  }
  return result;
}

// "com.example" of "/data/app/~~x==/com.example-y==/base.apk".
std::string_view PackageOf(std::string_view path) {
  constexpr std::string_view kRoot = "/data/app/";
  if (!path.starts_with(kRoot))
    return {};
  path.remove_prefix(kRoot.size());
  if (path.starts_with("~~"))
    path.remove_prefix(std::min(path.size(), path.find('/') + 1));
  const std::string_view directory = path.substr(0, path.find('/'));
  return directory.substr(0, directory.find('-'));
}

bool MayBeJava(std::string_view name) {
  return !name.starts_with("_Z") && name.find('.') != std::string_view::npos;
}

struct Marked {
  std::string_view before;
  std::string_view name;
  std::string_view after;
};

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  return text;
}

// The name without the mark, and what stands around it.
Marked WithoutMark(std::string_view text) {
  const size_t mark = text.find(kDeduped);
  if (mark == std::string_view::npos)
    return {{}, text, {}};
  const std::string_view head = text.substr(0, mark);
  const std::string_view tail = text.substr(mark + kDeduped.size());
  const std::string_view name = Trimmed(head.empty() ? tail : head);
  const auto start = static_cast<size_t>(name.data() - text.data());
  return {text.substr(0, start), name, text.substr(start + name.size())};
}

void DeobfuscateFrame(TraceBuilder& builder, const Deobfuscator& maps, size_t row) {
  ImportedTrace& trace = builder.trace();
  const std::string_view full = trace.Text(trace.frames.name[row]);
  if (!MayBeJava(full))
    return;
  const Marked marked = WithoutMark(full);
  const ImportedMapping& mapping = trace.mappings[trace.frames.mapping[row]];
  const uint32_t set = trace.frames.symbol_set[row];
  const uint32_t line = set == kNoId ? 0 : trace.symbols.line[set];
  const Deobfuscator::Answer answer =
      maps.FindMethod(PackageOf(trace.Text(mapping.name)), marked.name, line);
  if (answer.name.empty())
    return;
  const auto with_mark = [&](std::string_view name) {
    return builder.Intern(std::string(marked.before).append(name).append(marked.after));
  };
  trace.frames.deobfuscated_name[row] = with_mark(answer.name);
  if (answer.inlined.empty())
    return;
  const StringId file = trace.symbols.source_file[set];
  uint32_t new_set = kNoId;
  for (const Deobfuscator::Method& method : answer.inlined)
    new_set = builder.AddSymbol(new_set, with_mark(method.name), file, method.line);
  trace.frames.symbol_set[row] = new_set;
}

}  // namespace

std::vector<std::string> DeobfuscationMessages(const DeobfuscationMap& map) {
  MessageSplitter splitter(map);
  for (const ObfuscatedClass& source : map.classes)
    splitter.Add(source);
  return splitter.Take();
}

DeobfuscationMap ReadDeobfuscationMessage(std::string_view message) {
  DeobfuscationMap map;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == kPackage)
      map.package_name = reader.Bytes();
    else if (reader.field() == kVersion)
      map.version_code = reader.Int();
    else if (reader.field() == kClasses)
      map.classes.push_back(ReadClass(reader.Bytes()));
  }
  return map;
}

void ApplyDeobfuscation(TraceBuilder& builder, const Deobfuscator& deobfuscator) {
  if (deobfuscator.empty())
    return;
  ImportedTrace& trace = builder.trace();
  for (size_t row = 0; row < trace.frames.row_count(); ++row)
    DeobfuscateFrame(builder, deobfuscator, row);
  for (HeapClass& type : trace.heap_graph.classes) {
    const std::string name = deobfuscator.FindClass({}, trace.Text(type.name));
    if (!name.empty())
      type.deobfuscated_name = builder.Intern(name);
  }
  HeapReferenceTable& references = trace.heap_graph.references;
  for (size_t row = 0; row < references.row_count(); ++row) {
    const std::string name =
        deobfuscator.FindField({}, trace.Text(references.field_name[row]));
    if (!name.empty())
      references.deobfuscated_field_name[row] = builder.Intern(name);
  }
}

}  // namespace heapprofd
