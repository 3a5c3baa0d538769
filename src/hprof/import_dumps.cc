#include <sys/stat.h>

#include <memory>
#include <utility>

#include "base/text.h"
#include "hprof/graph_tables.h"
#include "hprof/merge.h"
#include "import/formats.h"
#include "import/perfetto/byte_source.h"

namespace heapprofd::hprof {

bool IsDump(const std::string& path) {
  struct stat status {};

  if (path == "-" || stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
    return false;
  Result<std::unique_ptr<FileSource>> file = FileSource::Open(path);
  if (!file.ok())
    return false;
  InflatingSource source(file.value().get());
  std::string head(kMagic.size(), '\0');
  const Result<size_t> count = source.ReadFully(head);
  return count.ok() && count.value() == head.size() && head == kMagic;
}

Status ImportDumps(const std::string& path,
                   TraceBuilder* builder,
                   std::vector<std::string>* notes) {
  HPD_TRY_ASSIGN(const MappedInput input, OpenWhole(path, notes));
  HPD_TRY_ASSIGN(const DumpFile file, DumpFile::Read(input.bytes(), path));
  for (const std::string& damage : {input.damage(), file.damage()}) {
    if (!damage.empty())
      notes->push_back(damage);
  }
  builder->BeginSource();
  GraphSource source;
  source.upid = AddNamedProcess(FileName(path), *builder);
  source.is_damaged = !input.damage().empty() || !file.damage().empty();
  HPD_TRY(AddGraphs(file, source, builder, notes));
  return input.Check();
}

}  // namespace heapprofd::hprof
