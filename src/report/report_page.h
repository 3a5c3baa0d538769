// The page of a report: one file of HTML that holds everything and asks for nothing.
#pragma once

#include <string>
#include <string_view>

namespace heapprofd {

// The page with `data` (report_data.h) in it, compressed and as base64: no text of a
// profile is ever part of the HTML.
std::string ReportPage(std::string_view data);

// As in RFC 4648, with padding.
std::string Base64(std::string_view bytes);

}  // namespace heapprofd
