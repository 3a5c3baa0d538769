// The page of a report: one file of HTML that holds everything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heapprofd {

enum class PageKind : uint8_t {
  kFile,    // asks for nothing
  kServed,  // may ask whoever has served it, and nobody else; asks for its data, too
};

struct PageOptions {
  PageKind kind = PageKind::kFile;
  bool has_objects = false;  // the data has a graph of objects: the page can show them
};

// The page with `data` (report_data.h) in it, compressed and as base64: no text of a
// profile is ever part of the HTML. Empty for a served page.
std::string ReportPage(std::string_view data, const PageOptions& options = {});

// As in RFC 4648, with padding.
void AppendBase64(std::string_view bytes, std::string& text);

}  // namespace heapprofd
