#include "cli/record/resident_table.h"

#include <algorithm>
#include <cstdio>

#include "base/format.h"
#include "base/text.h"

namespace heapprofd {
namespace {

constexpr size_t kMostOwners = 5;

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

std::string OwnerRows(const std::vector<BufferOwner>& owners, int indent) {
  uint64_t bytes = 0;
  uint64_t buffers = 0;
  for (const BufferOwner& owner : owners) {
    bytes += owner.bytes;
    buffers += owner.buffers;
  }
  std::string text = ResidentRow(indent, bytes,
                                 FormatCount(static_cast<double>(buffers)) +
                                     " direct buffers, most of malloc; held by");
  constexpr int kDeeper = 4;
  for (size_t i = 0; i < std::min(owners.size(), kMostOwners); ++i)
    text += ResidentRow(indent + kDeeper, owners[i].bytes, Printable(owners[i].name));
  if (owners.size() > kMostOwners)
    text += std::string(static_cast<size_t>(indent + kDeeper), ' ') + "and " +
            std::to_string(owners.size() - kMostOwners) + " other classes\n";
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
                            std::to_string(resident.thread_count) + " threads");
  text += ResidentRow(kIndent, resident.files, "mapped files");
  text += ResidentRow(kIndent, resident.rest, "the rest; known of it:");
  if (figures.malloc)
    text += ResidentRow(
        kDeeper, static_cast<uint64_t>(std::max(figures.malloc->live, 0.0)),
        "live in malloc, by the samples: " + FormatBytes(figures.malloc->low) + " to " +
            FormatBytes(figures.malloc->high));
  if (memory.metaspace)
    text += ResidentRow(
        kDeeper, memory.metaspace->committed,
        "classes (metaspace) committed, " + Bytes(memory.metaspace->used) + " used");
  if (!figures.owners.empty())
    text += OwnerRows(figures.owners, kDeeper);
  return text;
}

}  // namespace heapprofd
