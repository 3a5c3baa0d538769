#include <sys/stat.h>

#include <memory>
#include <utility>

#include "base/text.h"
#include "hprof/graph_contents.h"
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
  constexpr std::string_view kText = ", created";  // dumps as text go on so
  std::string head(kVersionBytes - 1 + kText.size(), '\0');
  const Result<size_t> count = source.ReadFully(head);
  return count.ok() && head.starts_with(kMagic) && !head.ends_with(kText);
}

Status ImportDumps(const std::string& path,
                   TraceBuilder* builder,
                   GraphContentsList* contents,
                   std::vector<std::string>* notes) {
  HPD_TRY_ASSIGN(MappedInput input, OpenWhole(path, notes));
  HPD_TRY_ASSIGN(DumpFile file, DumpFile::Read(input.bytes(), path));
  const auto kept =
      std::make_shared<const KeptDump>(KeptDump{std::move(input), std::move(file)});
  GraphSource source;
  for (const std::string& damage : {kept->input->damage(), kept->file.damage()}) {
    source.is_damaged = source.is_damaged || !damage.empty();
    if (!damage.empty())
      notes->push_back(damage);
  }
  builder->processes().BeginSource();
  source.upid = AddNamedProcess(FileName(path), *builder);
  source.kept = kept;
  source.contents = contents;
  HPD_TRY(AddGraphs(kept->file, source, builder, notes));
  HPD_TRY(kept->input->Check());
  kept->input->Release();
  return {};
}

}  // namespace heapprofd::hprof
