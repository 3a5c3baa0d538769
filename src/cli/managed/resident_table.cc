#include "cli/managed/resident_table.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/text.h"
#include "cli/text_layout.h"

namespace heapprofd {
namespace {

constexpr size_t kMostOwners = 5;
constexpr size_t kMostStacks = 3;  // of each

std::string Bytes(uint64_t bytes) {
  return FormatBytes(static_cast<double>(bytes));
}

std::string ResidentRow(int indent, uint64_t bytes, const std::string& text) {
  constexpr size_t kWidth = 10;
  std::string figure = Bytes(bytes);
  figure.insert(0, kWidth - std::min(kWidth, figure.size()), ' ');
  return std::string(static_cast<size_t>(indent), ' ') + figure + "  " + text + "\n";
}

std::string Usage(const std::optional<UsedMemory>& memory) {
  return memory ? ": " + Bytes(memory->used) + " used of " + Bytes(memory->committed) +
                      " committed"
                : "";
}

// "os::malloc <- its caller".
std::string StackText(const std::vector<std::string>& functions, bool use_unicode) {
  constexpr size_t kMostColumns = 60;  // of a function
  std::string text;
  for (const std::string& function : functions)
    text += (text.empty()  ? ""
             : use_unicode ? " ← "
                           : " <- ") +
            Cut(Printable(function), kMostColumns);
  return text.empty() ? "[unknown]" : text;
}

// "and 3 other stacks".
std::string MoreRow(int indent, size_t more, const char* one, const char* many) {
  return std::string(static_cast<size_t>(indent), ' ') + "and " +
         FormatCounted(static_cast<double>(more), one, many) + "\n";
}

std::string StackRows(const BufferOwner& owner, int indent, bool use_unicode) {
  std::string text;
  for (size_t i = 0; i < std::min(owner.stacks.size(), kMostStacks); ++i)
    text += ResidentRow(indent, owner.stacks[i].sum.bytes,
                        "by " + StackText(owner.stacks[i].functions, use_unicode));
  if (owner.stacks.size() > kMostStacks)
    text +=
        MoreRow(indent, owner.stacks.size() - kMostStacks, "other stack", "other stacks");
  return text;
}

std::string SmallestSamples(uint64_t count) {
  return count == 1 ? "the smallest sample, which is not listed"
                    : "one of the " + FormatCount(static_cast<double>(count)) +
                          " smallest samples, which are not listed";
}

// What may have become of buffers that chance does not account for.
std::string BesideChance(const MallocSampling& sampling) {
  std::vector<std::string> reasons = {"allocated before or after the recording",
                                      "not by malloc"};
  if (sampling.unlisted_blocks > 0)
    reasons.push_back(SmallestSamples(sampling.unlisted_blocks));
  if (sampling.lacks_records)
    reasons.emplace_back("among the records that are missing");
  std::string text;
  for (size_t i = 0; i < reasons.size(); ++i)
    text += (i == 0 ? "" : i + 1 == reasons.size() ? ", or " : ", ") + reasons[i];
  return text;
}

std::string WhyUnsampled(const UnsampledBuffers& unsampled) {
  constexpr double kSurelyMore = 3;  // standard deviations
  if (unsampled.sampling.interval == 0)
    return "the trace has nothing of malloc in this process";
  std::string why;
  if (unsampled.expected >= 1)
    why = "1 sample per " + Bytes(unsampled.sampling.interval) + " misses about " +
          FormatBytes(unsampled.expected);
  if (static_cast<double>(unsampled.sum.bytes) >
      unsampled.expected + kSurelyMore * std::sqrt(unsampled.variance))
    why += (why.empty() ? "" : "; the rest: ") + BesideChance(unsampled.sampling);
  return why.empty() ? "as chance would have it" : why;
}

std::string UnsampledRow(const UnsampledBuffers& unsampled, int indent) {
  return ResidentRow(indent, unsampled.sum.bytes,
                     "in " + FormatCount(static_cast<double>(unsampled.sum.buffers)) +
                         " of them without a stack: " + WhyUnsampled(unsampled));
}

// Blocks from before the recording are no samples.
std::string MallocText(const MallocEstimate& malloc) {
  if (malloc.live <= 0 && malloc.high <= 0)
    return "live in malloc of what the recording has seen: nothing was sampled, and what "
           "was allocated before is not seen";
  return "live in malloc, by the samples: " + FormatBytes(malloc.low) + " to " +
         FormatBytes(malloc.high);
}

std::string OwnerRows(const MachineFigures& figures, int indent) {
  const std::vector<BufferOwner>& owners = figures.owners;
  BufferSum all;
  for (const BufferOwner& owner : owners) {
    all.bytes += owner.sum.bytes;
    all.buffers += owner.sum.buffers;
  }
  std::string text = ResidentRow(
      indent, all.bytes,
      FormatCounted(static_cast<double>(all.buffers), "direct buffer", "direct buffers") +
          ", most of malloc; held by");
  constexpr int kDeeper = 4;
  for (size_t i = 0; i < std::min(owners.size(), kMostOwners); ++i)
    text +=
        ResidentRow(indent + kDeeper, owners[i].sum.bytes, Printable(owners[i].name)) +
        StackRows(owners[i], indent + 2 * kDeeper, figures.use_unicode);
  if (owners.size() > kMostOwners)
    text += MoreRow(indent + kDeeper, owners.size() - kMostOwners, "other class",
                    "other classes");
  if (figures.unsampled)
    text += UnsampledRow(*figures.unsampled, indent + kDeeper);
  return text;
}

}  // namespace

std::string FormatResidentTable(const MachineFigures& figures) {
  constexpr int kIndent = 2;
  constexpr int kDeeper = 6;
  const ResidentMemory& resident = figures.resident;
  const MachineMemory& memory = figures.memory;
  std::string text = "  resident memory of " + figures.process + ": " +
                     Bytes(resident.all) + ", of which\n";
  if (resident.heap > 0 || !memory.heap_ranges.empty())
    text += ResidentRow(kIndent, resident.heap, "Java heap" + Usage(memory.heap));
  if (!memory.code_ranges.empty())
    text += ResidentRow(kIndent, resident.code, "compiled code" + Usage(memory.code));
  if (resident.stack_count > 0)
    text += ResidentRow(kIndent, resident.stacks,
                        "stacks of " + std::to_string(resident.stack_count) + " of " +
                            FormatCounted(static_cast<double>(resident.thread_count),
                                          "thread", "threads"));
  text += ResidentRow(kIndent, resident.files, "mapped files");
  text += ResidentRow(kIndent, resident.rest, "the rest; known of it:");
  if (figures.malloc)
    text +=
        ResidentRow(kDeeper, static_cast<uint64_t>(std::max(figures.malloc->live, 0.0)),
                    MallocText(*figures.malloc));
  if (memory.metaspace)
    text += ResidentRow(
        kDeeper, memory.metaspace->committed,
        "classes (metaspace) committed, " + Bytes(memory.metaspace->used) + " used");
  if (!figures.owners.empty())
    text += OwnerRows(figures, kDeeper);
  return text;
}

}  // namespace heapprofd
