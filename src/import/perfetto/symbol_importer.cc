#include "import/perfetto/symbol_importer.h"

#include <algorithm>
#include <vector>

#include "import/perfetto/interned_tables.h"
#include "trace/fields.h"
#include "trace/message_reader.h"

namespace heapprofd {

void SymbolImporter::Add(std::string_view message) {
  std::string_view path;
  std::string_view build_id;
  MessageReader header(message);
  while (header.Next()) {
    if (header.field() == field::ModuleSymbols::kPath)
      path = header.Bytes();
    else if (header.field() == field::ModuleSymbols::kBuildId)
      build_id = header.Bytes();
  }
  const auto [module, is_new] = modules_.try_emplace(
      {builder_->Intern(MappingName(path)), builder_->Intern(BuildIdText(build_id))},
      static_cast<uint32_t>(modules_.size()));
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == field::ModuleSymbols::kAddressSymbols)
      AddAddress(module->second, reader.Bytes());
  }
}

void SymbolImporter::AddAddress(uint32_t module, std::string_view message) {
  Entry entry{.module = module, .set = kNoId, .rel_pc = 0};
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == field::AddressSymbols::kAddress)
      entry.rel_pc = reader.Uint();
    if (reader.field() != field::AddressSymbols::kLines)
      continue;
    std::string_view function;
    std::string_view file;
    uint64_t number = 0;
    MessageReader line(reader.Bytes());
    while (line.Next()) {
      if (line.field() == field::Line::kFunctionName)
        function = line.Bytes();
      else if (line.field() == field::Line::kSourceFileName)
        file = line.Bytes();
      else if (line.field() == field::Line::kLineNumber)
        number = line.Uint();
    }
    const bool has_line = !file.empty() && number <= UINT32_MAX;
    entry.set = builder_->AddSymbol(entry.set, builder_->Intern(function),
                                    file.empty() ? kNoId : builder_->Intern(file),
                                    has_line ? static_cast<uint32_t>(number) : 0);
  }
  if (entry.set != kNoId)
    entries_.push_back(entry);
}

void SymbolImporter::Apply() {
  ImportedTrace& trace = builder_->trace();
  std::vector<uint32_t> module_of;  // by mapping
  for (const ImportedMapping& mapping : trace.mappings) {
    const auto module = modules_.find({mapping.name, mapping.build_id});
    module_of.push_back(module == modules_.end() ? kNoId : module->second);
  }
  const std::span<Entry> entries = entries_.span();
  std::sort(entries.begin(), entries.end());
  std::vector<bool> is_used(entries.size());
  for (size_t frame = 0; frame < trace.frames.row_count(); ++frame) {
    const uint32_t module = module_of[trace.frames.mapping[frame]];
    if (module == kNoId)
      continue;
    const Entry wanted{
        .module = module, .set = kNoId, .rel_pc = trace.frames.rel_pc[frame]};
    const auto after = std::upper_bound(entries.begin(), entries.end(), wanted);
    if (after == entries.begin())
      continue;
    const Entry& last = *(after - 1);
    if (last.module != module || last.rel_pc != wanted.rel_pc)
      continue;
    trace.frames.symbol_set[frame] = last.set;
    is_used[static_cast<size_t>(after - 1 - entries.begin())] = true;
  }
  int64_t unused = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool is_replaced = i + 1 < entries.size() &&
                             entries[i + 1].module == entries[i].module &&
                             entries[i + 1].rel_pc == entries[i].rel_pc;
    unused += is_used[i] || is_replaced ? 0 : 1;
  }
  trace.stats.Set(StatId::kUnknownSymbolsModule, 0, unused);
}

}  // namespace heapprofd
