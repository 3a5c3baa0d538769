#include "import/unknown_format.h"

#include <algorithm>

namespace heapprofd {
namespace {

using namespace std::string_view_literals;

struct KnownFile {
  std::string_view begin;     // first bytes
  std::string_view contains;  // among those that are looked at; "": anything
  std::string_view what;      // and what to do
};

// The more special rows first.
constexpr KnownFile kKnownFiles[] = {
    {"heap_v2/"sv, ""sv,
     "it is a heap profile of jemalloc; jeprof --collapsed PROGRAM FILE > x.folded makes "
     "one that can be read"sv},
    {"heap profile: "sv, ""sv,
     "it is a heap profile of gperftools or Go, as text; go tool pprof -proto PROGRAM "
     "FILE > x.pb.gz makes one that can be read"sv},
    {"--- heapz"sv, ""sv,
     "it is a heap profile of Java, as text; go tool pprof -proto FILE > x.pb.gz makes "
     "one that can be read"sv},
    {"--- "sv, "cycles/second"sv,
     "it is a profile of contention, not of memory; go tool pprof shows it"sv},
    {"--- "sv, "sampling period"sv,
     "it is a profile of contention, not of memory; go tool pprof shows it"sv},
    {"goroutine profile: "sv, ""sv,
     "it is a list of Go's goroutines, not a profile of memory"sv},
    {"threadcreate profile: "sv, ""sv,
     "it is a list of Go's threads, not a profile of memory"sv},
    {"desc: "sv, "\ncmd: "sv,
     "it is a recording of Valgrind's massif; ms_print shows it"sv},
    {"# callgrind format"sv, ""sv,
     "it is a profile of Valgrind's callgrind; callgrind_annotate shows it"sv},
    {"version: 1\ncreator: callgrind"sv, ""sv,
     "it is a profile of Valgrind's callgrind; callgrind_annotate shows it"sv},
    {"positions: "sv, "\nevents: "sv,
     "it is a profile in callgrind's format; callgrind_annotate shows it"sv},
    {"{\"dhatFileVersion\""sv, ""sv,
     "it is a recording of Valgrind's DHAT; dh_view.html, which comes with Valgrind, "
     "shows it"sv},
    {"{"sv, "speedscope.app/file-format-schema"sv,
     "it is a profile of speedscope; https://www.speedscope.app shows it"sv},
    {"{\"snapshot\":"sv, ""sv,
     "it is a heap snapshot of V8; the page Memory of Chrome's developer tools shows "
     "it"sv},
    {"{\"head\":"sv, "callFrame"sv,
     "it is a heap profile of V8; the page Memory of Chrome's developer tools shows it"sv},
    {"{"sv, "\"traceEvents\""sv,
     "it is a trace as JSON; https://ui.perfetto.dev shows it"sv},
    {"PERFILE2"sv, ""sv,
     "it is a recording of perf, not of memory; perf report shows it"sv},
    {"FLR\0"sv, ""sv,
     "it is a recording of Java's Flight Recorder; jfrconv --alloc --total -o collapsed "
     "FILE x.folded, of async-profiler, makes one that can be read"sv},
    {"memray"sv, ""sv, "it is a recording of memray; memray flamegraph FILE shows it"sv},
    {"JAVA PROFILE "sv, "created "sv,
     "it is a heap dump of Java as text; jcmd PID GC.heap_dump x.hprof makes one that "
     "can "
     "be read"sv},
    {"\xfd"
     "7zXZ\0"sv,
     ""sv, "it is compressed with xz; unpack it first: xz -d FILE"sv},
    {"BZh"sv, ""sv, "it is compressed with bzip2; unpack it first: bzip2 -d FILE"sv},
    {"PK\x03\x04"sv, ""sv, "it is a zip file; unpack it first: unzip FILE"sv},
    {"\x04\x22\x4d\x18"sv, ""sv,
     "it is compressed with lz4; unpack it first: lz4 -d FILE"sv},
    {"\x7f"
     "ELF"sv,
     ""sv, "it is a program or a library, no profile"sv},
    {"\xff\xfe"sv, ""sv,
     "it is text in UTF-16; iconv -f UTF-16 -t UTF-8 FILE > x converts it"sv},
    {"\xfe\xff"sv, ""sv,
     "it is text in UTF-16; iconv -f UTF-16 -t UTF-8 FILE > x converts it"sv},
    {"<svg"sv, ""sv, "it is a picture (SVG), no profile"sv},
    {"<?xml"sv, "<svg"sv, "it is a picture (SVG), no profile"sv},
    {"<!DOCTYPE"sv, ""sv, "it is a web page, no profile"sv},
    {"<html"sv, ""sv, "it is a web page, no profile"sv},
    {"# HELP "sv, ""sv, "it is a page of Prometheus' metrics, no profile"sv},
    {"# TYPE "sv, ""sv, "it is a page of Prometheus' metrics, no profile"sv},
};

bool IsPlainText(std::string_view head) {
  return std::ranges::all_of(head, [](char c) {
    return static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\r' || c == '\t' ||
           c == '\f';
  });
}

bool HasSameCommas(std::string_view head) {
  const std::string_view first = head.substr(0, head.find('\n'));
  head.remove_prefix(std::min(first.size() + 1, head.size()));
  const std::string_view second = head.substr(0, head.find('\n'));
  const auto commas = std::ranges::count(first, ',');
  return commas > 0 && commas == std::ranges::count(second, ',');
}

// What text looks like; "": it is none.
std::string_view KindOfText(std::string_view head) {
  if (!IsPlainText(head))
    return "";
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos)
    return "it has empty lines only; ";
  if (head[first] == '{' || head[first] == '[')
    return "it looks like JSON; ";
  if (HasSameCommas(head))
    return "it looks like a table (CSV); ";
  return "it is text, but most of its lines are no folded stacks (main;f;g 4096); ";
}

// The words of a row that fits; "": there is none.
std::string_view KnownKind(std::string_view head) {
  for (const KnownFile& known : kKnownFiles) {
    if (head.starts_with(known.begin) && head.find(known.contains) != std::string::npos)
      return known.what;
  }
  return "";
}

}  // namespace

Status UnknownFormat(const std::string& name, std::string_view head) {
  const std::string prefix = "cannot read " + name + ": ";
  if (head.empty())
    return Status(StatusCode::kNotFound,
                  prefix + "it is empty; was the recording interrupted before its end?");
  if (const std::string_view known = KnownKind(head); !known.empty())
    return Status(StatusCode::kCorrupt, prefix + std::string(known));
  return Status(StatusCode::kCorrupt,
                prefix + "its format is not known; " + std::string(KindOfText(head)) +
                    "Perfetto traces (raw-trace), pprof profiles, folded stacks, "
                    "heaptrack recordings and heap dumps of Java can be read");
}

}  // namespace heapprofd
