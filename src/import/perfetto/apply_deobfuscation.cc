#include "import/perfetto/apply_deobfuscation.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "tables/decode_queue.h"

namespace heapprofd {
namespace {

constexpr std::string_view kDeduped = "[DEDUPED]";

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

// The name without the mark, and what stands around it.
Marked WithoutMark(std::string_view text) {
  const size_t mark = text.find(kDeduped);
  if (mark == std::string_view::npos)
    return {{}, text, {}};
  const std::string_view head = text.substr(0, mark);
  const std::string_view tail = text.substr(mark + kDeduped.size());
  const std::string_view name = Trimmed(head.empty() ? tail : head, " ");
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

void DeobfuscateHeapGraphs(TraceBuilder& builder, const Deobfuscator& maps) {
  ImportedTrace& trace = builder.trace();
  const auto package_of = [&](const HeapClass& type) {
    return PackageOf(trace.Text(type.location));
  };
  for (HeapClass& type : trace.heap_graph.classes) {
    const std::string name = maps.FindClass(package_of(type), trace.Text(type.name));
    if (!name.empty())
      type.deobfuscated_name = builder.Intern(name);
  }
  HeapReferenceTable& references = trace.heap_graph.references;
  const Column<uint32_t>& type_of = trace.heap_graph.objects.type;
  for (size_t row = 0; row < references.row_count(); ++row) {
    const HeapClass& owner = trace.heap_graph.classes[type_of[references.owner[row]]];
    const std::string name =
        maps.FindField(package_of(owner), trace.Text(references.field_name[row]));
    if (!name.empty())
      references.deobfuscated_field_name[row] = builder.Intern(name);
  }
}

// Rewrites callsites in outlines to those of their callers, or stacks as if they had
// been. Rows stay where they are, as parents must come before their children: two rows
// may be the same stack afterwards.
class OutlineResolver {
 public:
  OutlineResolver(TraceBuilder& builder, const Deobfuscator& maps)
      : builder_(builder), trace_(builder.trace()), maps_(maps) {}

  void Resolve() {
    is_outline_.resize(trace_.frames.row_count());
    bool has_outline = false;
    for (size_t row = 0; row < is_outline_.size(); ++row) {
      const std::string_view name = trace_.Text(trace_.frames.name[row]);
      is_outline_[row] = MayBeJava(name) && maps_.IsOutline(PackageOfFrame(row), name);
      has_outline |= is_outline_[row];
    }
    if (!has_outline)
      return;
    ResolveCallsites();
    ResolveStacks();
  }

 private:
  void ResolveCallsites() {
    CallsiteTable& callsites = trace_.callsites;
    for (size_t row = 0; row < callsites.row_count(); ++row) {
      const uint32_t caller = callsites.parent[row];
      if (caller == kNoId)
        continue;
      const uint32_t frame = callsites.frame[row];
      if (is_outline_[frame]) {
        callsites.frame[row] = FrameAtOutline(callsites.frame[caller], frame);
        callsites.parent[row] = callsites.parent[caller];
        callsites.depth.Set(row, callsites.depth[caller]);
      } else {
        callsites.depth.Set(row, callsites.depth[caller] + 1);
      }
    }
  }

  void ResolveStacks() {
    Column<uint32_t>& frames = trace_.stacks.frames;
    size_t at = 0;  // in `frames` as they were
    size_t kept = 0;
    for (uint32_t& end : trace_.stacks.end) {
      for (const size_t begin = kept; at < end; ++at) {
        if (kept > begin && is_outline_[frames[at]])
          frames[kept - 1] = FrameAtOutline(frames[kept - 1], frames[at]);
        else
          frames[kept++] = frames[at];
      }
      end = static_cast<uint32_t>(kept);
    }
    frames.resize(kept, kNoId);
  }

  std::string_view PackageOfFrame(size_t frame) const {
    return PackageOf(trace_.Text(trace_.mappings[trace_.frames.mapping[frame]].name));
  }

  Deobfuscator::Position PositionOf(uint32_t frame) const {
    const uint32_t set = trace_.frames.symbol_set[frame];
    return {.qualified_name = trace_.Text(trace_.frames.name[frame]),
            .line = set == kNoId ? 0 : trace_.symbols.line[set]};
  }

  // The caller's frame, with the line it has for this line of the outline.
  uint32_t FrameAtOutline(uint32_t caller, uint32_t outline) {
    const auto [known, is_new] = frames_.try_emplace({caller, outline}, caller);
    if (!is_new)
      return known->second;
    const uint32_t line = maps_.LineAtOutline(PackageOfFrame(caller), PositionOf(caller),
                                              PositionOf(outline));
    if (line != 0)
      known->second = CopyFrame(caller, line);
    return known->second;
  }

  uint32_t CopyFrame(uint32_t frame, uint32_t line) {
    FrameTable& frames = trace_.frames;
    if (frames.row_count() >= kNoId - 1)
      return frame;
    const uint32_t set = frames.symbol_set[frame];
    frames.name.push_back(frames.name[frame]);
    frames.mapping.push_back(frames.mapping[frame]);
    frames.rel_pc.push_back(frames.rel_pc[frame]);
    frames.symbol_set.push_back(builder_.AddSymbol(
        kNoId, trace_.symbols.name[set], trace_.symbols.source_file[set], line));
    frames.deobfuscated_name.push_back(kNoId);
    frames.type.push_back(frames.type[frame]);
    return static_cast<uint32_t>(frames.row_count() - 1);
  }

  TraceBuilder& builder_;
  ImportedTrace& trace_;
  const Deobfuscator& maps_;
  std::vector<bool> is_outline_;                              // by frame
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> frames_;  // by caller and outline
};

}  // namespace

void ApplyDeobfuscation(TraceBuilder& builder, const Deobfuscator& deobfuscator) {
  if (deobfuscator.empty())
    return;
  builder.decoding().Run();  // outlines are found in stacks
  ImportedTrace& trace = builder.trace();
  OutlineResolver(builder, deobfuscator).Resolve();  // by lines as the trace has them
  for (size_t row = 0; row < trace.frames.row_count(); ++row)
    DeobfuscateFrame(builder, deobfuscator, row);
  DeobfuscateHeapGraphs(builder, deobfuscator);
}

}  // namespace heapprofd
