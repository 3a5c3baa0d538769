#include "hotspot/machine_memory.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "hotspot/attach_socket.h"
#include "hotspot/errand.h"
#include "hotspot/text_lines.h"

namespace heapprofd {
namespace {

constexpr size_t kMostRanges = 64;

// "24040K", "256M", "120036Kb": the number and unit that `text` begins with.
std::optional<uint64_t> MemorySizeAt(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr uint64_t kMost = uint64_t{1} << 20;  // GiB, of any machine
  if (error != std::errc())
    return std::nullopt;
  const size_t digits = static_cast<size_t>(end - text.data());
  switch (digits < text.size() ? text[digits] : 'B') {
    case 'K':
      return std::min(number, kMost << 20) << 10;
    case 'M':
      return std::min(number, kMost << 10) << 20;
    case 'G':
      return std::min(number, kMost) << 30;
    case 'B':
      return std::min(number, kMost << 30);
    default:
      return std::nullopt;
  }
}

// Behind the first `key` of the line.
std::optional<uint64_t> SizeBehind(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  return at == std::string_view::npos ? std::nullopt
                                      : MemorySizeAt(line.substr(at + key.size()));
}

// The word before the first `key`.
std::optional<uint64_t> SizeBefore(std::string_view line, std::string_view key) {
  const size_t end = line.find(key);
  if (end == std::string_view::npos)
    return std::nullopt;
  line = line.substr(0, end);
  return MemorySizeAt(line.substr(line.rfind(' ') + 1));
}

// The addresses in "[0x1000, 0x2000, 0x3000)".
std::vector<uint64_t> AddressesIn(std::string_view line) {
  constexpr size_t kMost = 4;
  std::vector<uint64_t> addresses;
  const size_t bracket = line.find('[');
  line.remove_prefix(bracket == std::string_view::npos ? line.size() : bracket);
  for (size_t at = line.find("0x");
       at != std::string_view::npos && addresses.size() < kMost; at = line.find("0x")) {
    line.remove_prefix(at + 2);
    uint64_t address = 0;
    (void)std::from_chars(line.data(), line.data() + line.size(), address, 16);
    addresses.push_back(address);
  }
  return addresses;
}

class MemoryReader {
 public:
  void Line(std::string_view line) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.starts_with("Metaspace"))
      Add(SizeBehind(line, "used "), SizeBehind(line, "committed "), &memory_.metaspace);
    else if (line.starts_with("CodeHeap ") || line.starts_with("CodeCache:"))
      code_used_ = SizeBehind(line, " used=");
    else if (line.starts_with("bounds "))
      CodeBounds(AddressesIn(line));
    else if (line.starts_with("- ["))  // Shenandoah's, behind "Reserved region:"
      AddRange(AddressesIn(line), &memory_.heap_ranges);
    else
      Heap(line);
  }

  MachineMemory& memory() { return memory_; }

 private:
  // Generations and heaps have a total; the spaces in them, which say "used", have none.
  void Heap(std::string_view line) {
    if (line.find(" total ") != std::string_view::npos) {
      const std::optional<uint64_t> committed = SizeBehind(line, "committed ");
      Add(SizeBehind(line, "used "), committed ? committed : SizeBehind(line, " total "),
          &memory_.heap);
      AddRange(AddressesIn(line), &memory_.heap_ranges);
    } else if (line.starts_with("ZHeap ")) {
      Add(SizeBehind(line, "used "), SizeBehind(line, "capacity "), &memory_.heap);
    } else if (line.find(" soft max, ") != std::string_view::npos) {  // Shenandoah
      Add(SizeBefore(line, " used"), SizeBefore(line, " committed"), &memory_.heap);
    }
  }

  static void Add(std::optional<uint64_t> used,
                  std::optional<uint64_t> committed,
                  std::optional<UsedMemory>* sum) {
    if (!used || !committed)
      return;
    UsedMemory total = sum->value_or(UsedMemory());
    total.used += *used;
    total.committed += *committed;
    *sum = total;
  }

  // Begin, end of what is committed, end.
  void CodeBounds(const std::vector<uint64_t>& bounds) {
    if (bounds.size() != 3 || bounds[1] < bounds[0])
      return;
    Add(code_used_, bounds[1] - bounds[0], &memory_.code);
    AddRange(bounds, &memory_.code_ranges);
  }

  static void AddRange(const std::vector<uint64_t>& addresses,
                       std::vector<ReservedRange>* ranges) {
    if (addresses.size() >= 2 && addresses.front() < addresses.back() &&
        ranges->size() < kMostRanges)
      ranges->push_back({addresses.front(), addresses.back()});
  }

  MachineMemory memory_;
  std::optional<uint64_t> code_used_;  // of the heap whose bounds follow
};

// In the messenger.
Result<std::string> AskFigures(const Attachment& attachment) {
  std::string answers;
  for (const char* command : {"GC.heap_info", "Compiler.codecache"}) {
    attachment.sender.Tell(std::string("asking for ") + command);
    const Result<std::string> answer = AskMachine(attachment, {"jcmd", command});
    if (!answer.ok())
      return Status(answer.status().code(),
                    std::string(command) + ": " + answer.status().message());
    answers += answer.value() + "\n";
  }
  return answers;
}

}  // namespace

MachineMemory MachineMemoryIn(std::string_view answers) {
  MemoryReader reader;
  while (!answers.empty())
    reader.Line(TakeLine(&answers));
  return std::move(reader.memory());
}

Result<MachineMemory> AskForMemory(const JavaProcess& process,
                                   const MachinePatience& patience,
                                   int stop_fd) {
  const Result<std::string> answers = AskOnErrand(process, patience, stop_fd, AskFigures);
  if (!answers.ok())
    return Status(answers.status().code(),
                  "cannot ask " + process.Description() +
                      " for its memory: " + answers.status().message());
  return MachineMemoryIn(answers.value());
}

}  // namespace heapprofd
