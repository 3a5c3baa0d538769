#include "export/frame_names.h"

#include "symbolize/demangle.h"

namespace heapprofd {
namespace {

const char* AnnotationOfType(std::string_view type) {
  if (type == "interpreted")
    return "interp";
  return type == "jit" ? "jit" : "";
}

bool HasJitCache(std::string_view mapping) {
  return mapping.starts_with("/memfd:jit-cache") ||
         mapping.starts_with("/memfd:/jit-cache") ||
         mapping.starts_with("/memfd:jit-zygote-cache") ||
         mapping.starts_with("/memfd:/jit-zygote-cache") ||
         mapping.starts_with("/dev/ashmem/dalvik-jit-code-cache");
}

const char* AnnotationOfMapping(std::string_view mapping) {
  for (const std::string_view suffix : {".vdex", ".dex", ".apk", ".jar"}) {
    if (mapping.ends_with(suffix))
      return "interp";
  }
  for (const std::string_view suffix : {".odex", ".oat", ".art"}) {
    if (mapping.ends_with(suffix))
      return "aot";
  }
  for (const std::string_view runtime : {"/libart.so", "/libartd.so"}) {
    if (mapping.ends_with(runtime))
      return "common-frame";
  }
  return HasJitCache(mapping) ? "jit" : "";
}

}  // namespace

std::string_view FrameNames::Demangled(StringId name) {
  if (demangled_.empty()) {
    demangled_.resize(trace_.strings.size());
    is_known_.resize(trace_.strings.size());
  }
  if (name >= demangled_.size())
    return {};
  if (!is_known_[name]) {
    is_known_[name] = true;
    const std::string_view text = trace_.Text(name);
    std::string demangled = Demangle(text);
    if (demangled != text)
      demangled_[name] = std::move(demangled);
  }
  return demangled_[name].empty() ? trace_.Text(name) : demangled_[name];
}

std::vector<const char*> FrameAnnotations(const ImportedTrace& trace) {
  std::vector<const char*> by_mapping;
  for (const ImportedMapping& mapping : trace.mappings)
    by_mapping.push_back(AnnotationOfMapping(trace.Text(mapping.name)));
  std::vector<const char*> annotations;
  annotations.reserve(trace.frames.row_count());
  for (size_t row = 0; row < trace.frames.row_count(); ++row) {
    const char* const of_type = AnnotationOfType(trace.Text(trace.frames.type[row]));
    annotations.push_back(*of_type != '\0' ? of_type
                                           : by_mapping[trace.frames.mapping[row]]);
  }
  return annotations;
}

}  // namespace heapprofd
