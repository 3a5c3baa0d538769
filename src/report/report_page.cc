#include "report/report_page.h"

#include "base/status.h"
#include "export/gzip.h"

extern "C" const char hpd_report_page_begin[];
extern "C" const char hpd_report_page_end[];

namespace heapprofd {
namespace {

constexpr std::string_view kDataMark = "%DATA%";
constexpr std::string_view kConnectMark = "%CONNECT%";
constexpr int kLevel = 4;  // half the time of the usual one, for 2 % more bytes

}  // namespace

std::string Base64(std::string_view bytes) {
  constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i)
      group = group << 8 |
              (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (size_t i = 0; i < 4; ++i)
      text += at + i <= bytes.size() ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::string ReportPage(std::string_view data, PageKind kind) {
  const std::string_view page(
      hpd_report_page_begin,
      static_cast<size_t>(hpd_report_page_end - hpd_report_page_begin));
  const size_t connect = page.find(kConnectMark);
  const size_t mark = page.find(kDataMark);
  HPD_CHECK(connect < mark && mark != std::string_view::npos);
  std::string text(page.substr(0, connect));
  text += kind == PageKind::kServed ? "'self'" : "'none'";
  text +=
      page.substr(connect + kConnectMark.size(), mark - connect - kConnectMark.size());
  text += Base64(Gzip(data, kLevel));
  text += page.substr(mark + kDataMark.size());
  return text;
}

}  // namespace heapprofd
