// A heap dump as the tables of heap_graph.h: for SQL under Perfetto's names.
//
// References are those that are not null, named as in a trace
// ("java.util.HashMap.table"); elements of arrays have no names, and what declares a
// field's type is not in a dump. An object holds its class by a reference only where
// nothing else keeps that for ever. An object that stands for a class has a class of its
// own: "java.lang.Class<com.example.Node>".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "hprof/dump_file.h"
#include "tables/object_contents.h"
#include "tables/trace_builder.h"

namespace heapprofd::hprof {

struct KeptDump;
using GraphContentsList = std::vector<std::shared_ptr<ObjectContents>>;

struct GraphSource {
  uint32_t upid = 0;
  int64_t ts = 0;
  bool is_damaged = false;
  // For the names of fields of all dumps of a file together, each with that of its class:
  // there may be as many of them as pairs of both. When it is used up they stand alone.
  uint64_t name_bytes_left = uint64_t{64} << 20;
  // For who will ask what is in the objects: the file, and what receives the answers of
  // each graph; null: nobody will.
  std::shared_ptr<const KeptDump> kept;
  GraphContentsList* contents = nullptr;
};

// Adds one dump as a graph. `notes` receives what could not be read.
Status AddGraph(const DumpFile& file,
                const HeapDump& dump,
                GraphSource* source,
                TraceBuilder* builder,
                std::vector<std::string>* notes);

// All of them, one after the other in time, beginning with that of the file.
Status AddGraphs(const DumpFile& file,
                 GraphSource source,
                 TraceBuilder* builder,
                 std::vector<std::string>* notes);

// Whether this is a file with the dump of a heap; false also for what cannot be looked
// into without taking it away, such as a pipe.
bool IsDump(const std::string& path);

// The same for a file by its name, as a process of this name. It stays open for
// `contents`.
Status ImportDumps(const std::string& path,
                   TraceBuilder* builder,
                   GraphContentsList* contents,
                   std::vector<std::string>* notes);

}  // namespace heapprofd::hprof
