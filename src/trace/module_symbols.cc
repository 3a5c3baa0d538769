#include "trace/module_symbols.h"

#include <algorithm>
#include <map>
#include <utility>

#include <protozero/pbf_writer.hpp>

#include "trace/fields.h"
#include "trace/limits.h"

namespace heapprofd {
namespace {

using protozero::pbf_writer;

// The name that readers give to a mapping: its components, each behind a slash. So
// "[vdso]" is "/[vdso]".
std::string ReaderName(std::string_view path) {
  std::string name;
  for (const std::string_view component : PathComponents(path))
    name.append("/").append(component);
  return name;
}

// Demangled, as symbolizers write them; the linker's name is that of the frame.
std::string AddressSymbols(uint64_t rel_pc, const std::vector<SourceLine>& lines) {
  std::string message;
  pbf_writer address(message);
  address.add_uint64(field::AddressSymbols::kAddress, rel_pc);
  for (const SourceLine& line : lines) {
    if (message.size() >= kMaxTextBytes)
      break;
    const std::string_view name =
        BoundedText(line.function.empty() ? line.system_name : line.function);
    const std::string_view file = BoundedText(line.file);
    pbf_writer entry(address, field::AddressSymbols::kLines);
    entry.add_string(field::Line::kFunctionName, name.data(), name.size());
    if (!file.empty())
      entry.add_string(field::Line::kSourceFileName, file.data(), file.size());
    entry.add_uint32(field::Line::kLineNumber, line.line);
  }
  return message;
}

bool IsNamed(const Mapping& mapping, NamedModules named) {
  return !mapping.build_id.empty() || named == NamedModules::kAll ||
         (named == NamedModules::kFiles && mapping.path.starts_with('/'));
}

bool AreSameLines(const std::vector<SourceLine>& a, const std::vector<SourceLine>& b) {
  return std::ranges::equal(a, b, [](const SourceLine& left, const SourceLine& right) {
    return left.function == right.function && left.file == right.file &&
           left.line == right.line;
  });
}

}  // namespace

std::vector<std::string_view> PathComponents(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    if (end > 0)
      parts.push_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

std::vector<std::string> ModuleSymbolsMessages(std::span<const Mapping> mappings,
                                               std::span<const Frame> frames,
                                               NamedModules named) {
  using Frames =
      std::map<uint64_t, const Frame*>;  // nullptr: they contradict one another
  std::map<std::pair<std::string, std::string_view>, Frames> modules;
  for (const Frame& frame : frames) {
    if (frame.mapping == kNoId || frame.lines.empty())
      continue;
    const Mapping& mapping = mappings[frame.mapping];
    if (!IsNamed(mapping, named))
      continue;
    const auto [entry, is_new] =
        modules[{ReaderName(BoundedText(mapping.path)), BoundedText(mapping.build_id)}]
            .emplace(frame.rel_pc, &frame);
    if (!is_new && mapping.build_id.empty() && entry->second != nullptr &&
        !AreSameLines(entry->second->lines, frame.lines))
      entry->second = nullptr;
  }
  std::vector<std::string> messages;
  for (auto& [module, known] : modules) {
    std::erase_if(known, [](const auto& entry) { return entry.second == nullptr; });
    auto next = known.begin();
    while (next != known.end()) {
      std::string& message = messages.emplace_back();
      pbf_writer writer(message);
      writer.add_string(field::ModuleSymbols::kPath, module.first);
      writer.add_bytes(field::ModuleSymbols::kBuildId, module.second.data(),
                       module.second.size());
      do {
        const std::string address = AddressSymbols(next->first, next->second->lines);
        if (message.size() + address.size() > kPacketTarget)
          break;
        writer.add_message(field::ModuleSymbols::kAddressSymbols, address);
      } while (++next != known.end());
    }
  }
  return messages;
}

}  // namespace heapprofd
