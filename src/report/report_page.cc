#include "report/report_page.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/status.h"
#include "export/gzip.h"

extern "C" const char hpd_report_page_begin[];
extern "C" const char hpd_report_page_end[];
extern "C" const char hpd_objects_page_begin[];
extern "C" const char hpd_objects_page_end[];

namespace heapprofd {
namespace {

constexpr std::string_view kDataMark = "%DATA%";
constexpr std::string_view kConnectMark = "%CONNECT%";

std::string_view PageWithoutData(bool has_objects) {
  const char* const begin = has_objects ? hpd_objects_page_begin : hpd_report_page_begin;
  const char* const end = has_objects ? hpd_objects_page_end : hpd_report_page_end;
  return {begin, static_cast<size_t>(end - begin)};
}

// Three bytes, fewer at the end of all.
std::array<char, 4> Base64Digits(std::string_view bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto byte = [bytes](size_t at) -> uint32_t {
    return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0u;
  };
  const uint32_t group = byte(0) << 16 | byte(1) << 8 | byte(2);
  return {kDigits[group >> 18], kDigits[group >> 12 & 63],
          bytes.size() > 1 ? kDigits[group >> 6 & 63] : '=',
          bytes.size() > 2 ? kDigits[group & 63] : '='};
}

}  // namespace

void AppendBase64(std::string_view bytes, std::string& text) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min<size_t>(3, bytes.size()))) {
    const std::array<char, 4> digits = Base64Digits(bytes.substr(0, 3));
    text.append(digits.data(), digits.size());
  }
}

std::string ReportPage(std::string_view data, const PageOptions& options) {
  const std::string_view page = PageWithoutData(options.has_objects);
  const bool is_served = options.kind == PageKind::kServed;
  const size_t connect = page.find(kConnectMark);
  const size_t mark = page.find(kDataMark);
  HPD_CHECK(connect < mark && mark != std::string_view::npos);
  const std::string packed = data.empty() ? std::string() : Gzip(data);
  std::string text;
  text.reserve(page.size() + packed.size() / 2 * 3);  // enough: base64 is 4 for 3
  text += page.substr(0, connect);
  text += is_served ? "'self'" : "'none'";
  text +=
      page.substr(connect + kConnectMark.size(), mark - connect - kConnectMark.size());
  AppendBase64(packed, text);
  text += page.substr(mark + kDataMark.size());
  return text;
}

}  // namespace heapprofd
