#include "cli/results/quality_words.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"

namespace heapprofd {
namespace {

constexpr double kWorthAWarning = 0.01;  // of the stacks

std::string Share(uint64_t part, uint64_t whole) {
  return FormatShare(static_cast<double>(part), static_cast<double>(whole));
}

bool IsMuch(uint64_t stacks, const Quality& quality) {
  return static_cast<double>(stacks) >
         static_cast<double>(quality.samples) * kWorthAWarning;
}

// A wait without a bound ends only when the profiler stands still (docs/design/
// ring-wait.md).
std::string LossWarning(const ProfileFaults& faults) {
  const Quality& quality = faults.quality;
  const bool has_waited = faults.has_waited;
  const bool is_bounded = faults.block_timeout_us != 0 || !faults.from_startup;
  const std::string advice =
      !has_waited  ? "; raise --shmem-size or --interval"
      : is_bounded ? "; raise --shmem-size, --interval or --block-client-timeout"
                   : "; do not stop the profiler, leave it some processor time, or raise "
                     "--shmem-size or --interval";
  return CountedExactly(quality.lost_records, " record (", " records (") +
         CountedExactly(quality.lost_samples, " sample)", " samples)") +
         " did not fit into the buffer" +
         (!has_waited  ? ""
          : is_bounded ? ", though the program waited as long as it may,"
                       : ", though the program waited until the profiler had stood still "
                         "for a second,") +
         (quality.lost_records == 1 ? " and is missing" : " and are missing") + advice;
}

// What did not arrive, or not as it was.
void AddLosses(const ProfileFaults& faults, std::vector<std::string>* warnings) {
  const Quality& quality = faults.quality;
  if (quality.lost_records > 0)
    warnings->push_back(LossWarning(faults));
  if (faults.sampling_interval != faults.original_sampling_interval &&
      faults.original_sampling_interval > 0)
    warnings->push_back("the sampling interval was raised from " +
                        std::to_string(faults.original_sampling_interval) + " to " +
                        std::to_string(faults.sampling_interval) +
                        " bytes to keep up; start with --interval " +
                        std::to_string(faults.sampling_interval));
  if (quality.corrupt_records > 0)
    warnings->push_back(
        CountedExactly(quality.corrupt_records, " record was", " records were") +
        " damaged and left out; the program may write "
        "outside of its own memory, which AddressSanitizer finds");
}

// What there was no room, or no time, for.
void AddLimits(const Quality& quality, std::vector<std::string>* warnings) {
  if (quality.threads_without_slot > 0)
    warnings->push_back(
        CountedExactly(quality.threads_without_slot, " thread was", " threads were") +
        " not recorded: more than 4096 at once");
  if (quality.reports_without_slot > 0)
    warnings->push_back(
        CountedExactly(quality.reports_without_slot, " allocation", " allocations") +
        " in the program's own heaps could not be recorded: too "
        "many threads use too many heaps; record fewer with --heaps");
  if (quality.refused_samples > 0)
    warnings->push_back(
        CountedExactly(quality.refused_samples, " sample was", " samples were") +
        " left out: too many are live at once; record with "
        "a larger --interval");
  if (quality.unsampled_calls > 0)
    warnings->push_back(UnsampledWords("this forked child", quality));
  if (quality.refused_dumps > 0)
    warnings->push_back(CountedExactly(quality.refused_dumps, " dump", " dumps") +
                        " that the program asked for could not be made: more than 1000, "
                        "or together too large for all programs of its user");
  if (quality.refused_marks > 0)
    warnings->push_back(
        CountedExactly(quality.refused_marks, " mark was", " marks were") +
        " not kept: more than 10,000 of the program, or with its dumps too much for all "
        "programs of its user");
  if (quality.unshaped_blocks > 0)
    warnings->push_back(
        CountedExactly(quality.unshaped_blocks, " size or lifetime of a sampled block is",
                       " sizes and lifetimes of sampled blocks are") +
        " told of the heap alone, not of their stacks: there are too many; record with "
        "a larger --interval");
  if (quality.unlisted_blocks > 0)
    warnings->push_back(
        CountedExactly(quality.unlisted_blocks, " live block,", " live blocks,") +
        (quality.unlisted_blocks == 1 ? " the smallest, is" : " the smallest, are") +
        " not listed, so that the stacks of direct buffers there are unknown; record "
        "with "
        "a larger --interval");
}

// Libraries that were opened so that they never meet the hooks.
void AddUnseen(const Quality& quality, std::vector<std::string>* warnings) {
  if (quality.deepbind_opens > 0)
    warnings->push_back(
        CountedExactly(quality.deepbind_opens, " call", " calls") +
        " of dlopen with RTLD_DEEPBIND: what these libraries allocate in the C library, "
        "past the program's own allocator, is not recorded; record the running program "
        "with -p");
  if (quality.namespace_opens > 0)
    warnings->push_back(
        CountedExactly(quality.namespace_opens, " call", " calls") +
        " of dlmopen: what libraries in a namespace of their own allocate is not "
        "recorded; record with -p when they are loaded");
}

// Why no way was found is known of those that end where the code itself is not.
void AddCutStacks(const Quality& quality, std::vector<std::string>* warnings) {
  const uint64_t others =
      quality.unwind_errors - std::min(quality.unwind_errors, quality.late_stacks);
  if (quality.late_stacks > 0)
    warnings->push_back(
        CountedExactly(quality.late_stacks, " stack ends", " stacks end") +
        " early: the program had ended before the code there was looked at; leave the "
        "profiler some processor time");
  if (quality.hidden_stacks > 0)
    warnings->push_back(
        CountedExactly(quality.hidden_stacks, " stack ends", " stacks end") +
        " early, at [return probe]: the kernel hides the callers of functions with a "
        "return probe (uretprobe of bpftrace, perf probe); probe their entries instead");
  if (quality.gone_files > 0)
    warnings->push_back(
        CountedExactly(quality.gone_files, " mapped file was", " mapped files were") +
        " gone, or could not be opened, when first looked at: stacks through code of "
        "theirs may end early or lack names; leave files of running programs in place, "
        "or record as root");
  if (IsMuch(others, quality))
    warnings->push_back(
        Share(others, quality.samples) +
        " of the stacks end early: no way was found from a function to its caller" +
        (quality.gone_files > 0 ? ""
                                : "; code built with -fasynchronous-unwind-tables has "
                                  "what is needed"));
}

void AddStacks(const Quality& quality, std::vector<std::string>* warnings) {
  if (IsMuch(quality.unknown_stacks, quality))
    warnings->push_back(Share(quality.unknown_stacks, quality.samples) +
                        " of the samples are without a stack, which never arrived");
  if (IsMuch(quality.truncated_stacks, quality))
    warnings->push_back(Share(quality.truncated_stacks, quality.samples) +
                        " of the stacks lack their outermost frames: they are deeper "
                        "than 512 frames, or larger than what is copied of a stack");
  AddCutStacks(quality, warnings);
  if (quality.agreed_samples < quality.checked_samples)
    warnings->push_back(std::to_string(quality.checked_samples - quality.agreed_samples) +
                        " of " + std::to_string(quality.checked_samples) +
                        " checked stacks disagreed with a full unwind");
}

// What is on a file system that answers late, or that somebody else serves.
void AddLateFiles(const ProfileFaults& faults, std::vector<std::string>* warnings) {
  constexpr size_t kNamed = 3;
  const std::vector<std::string>& files = faults.late_files;
  const uint64_t count = std::max<uint64_t>(files.size(), faults.quality.late_files);
  if (count == 0)
    return;
  std::string names;
  for (size_t i = 0; i < std::min(files.size(), kNamed); ++i)
    names += (i == 0 ? "" : ", ") + Printable(files[i]);
  if (files.size() > kNamed)
    names += ", ...";
  warnings->push_back(
      CountedExactly(count, " mapped file", " mapped files") + " did not open in time" +
      (names.empty() ? "" : " (" + names + ")") +
      ": stacks through code of theirs may end early or lack names; record again when "
      "the file system answers");
}

}  // namespace

std::string CountedExactly(uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + (count == 1 ? one : many);
}

std::vector<std::string> WordsOf(const ProfileFaults& faults) {
  std::vector<std::string> words;
  AddLosses(faults, &words);
  AddLimits(faults.quality, &words);
  AddUnseen(faults.quality, &words);
  AddStacks(faults.quality, &words);
  AddLateFiles(faults, &words);
  return words;
}

std::string AttachedWords(std::optional<double> live, uint64_t resident_kib) {
  std::string text =
      "attached while it ran: what it had allocated before is not seen (live " +
      (live ? FormatBytes(*live) : "unknown");
  if (resident_kib != 0)
    text += " beside RSS " + FormatBytes(static_cast<double>(resident_kib) * 1024);
  return text + ")";
}

std::string UnsampledWords(const std::string& whose, const Quality& quality) {
  return CountedExactly(quality.unsampled_calls, " allocation", " allocations") + " (" +
         FormatBytes(static_cast<double>(quality.unsampled_bytes)) + ") of " + whose +
         " came too early to be sampled, and are counted only: as much more may be live, "
         "which the upper limits allow for; start the program under heap_profile to "
         "sample all";
}

std::string GuardrailWords() {
  return "a guardrail ended the recording: the profiler used more memory or time than it "
         "may; raise max_heapprofd_memory_kb or max_heapprofd_cpu_secs, or record with a "
         "larger --interval";
}

std::string FullBufferWords(bool has_waited) {
  return std::string("the profile ends early: the buffer was full") +
         (has_waited ? ", and an allocation waited for space longer than it may" : "") +
         "; raise --shmem-size (shmem_size_bytes) or --interval "
         "(sampling_interval_bytes)" +
         (has_waited ? ", or --block-client-timeout (block_client_timeout_us)" : "");
}

std::string DamagedBufferWords() {
  return "the profile ends early: the buffer held what no recorder writes; the program "
         "may write outside of its own memory, which AddressSanitizer finds";
}

std::string ForeignStackWords() {
  return "the profile ends early: a thread ran on a stack that is not its own, which its "
         "recorder does not follow; heap_profile does";
}

}  // namespace heapprofd
