#include "cli/query/result_printer.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/utf8.h"

namespace heapprofd {
namespace {

std::string SixDecimals(double value) {
  char text[400];  // the longest double has 309 digits before the point
  snprintf(text, sizeof(text), "%.6f", value);
  return text;
}

// As SQLite has it: with a point or an exponent.
std::string RealText(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), value).ptr;
  const std::string text(digits.begin(), end);
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

class Printer : public ResultSink {
 public:
  explicit Printer(FILE* output)
      : output_(output), is_terminal_(isatty(fileno(output)) != 0) {}

 protected:
  // Programs that read the result get the texts of the trace as they are.
  Status Write(const std::string& result) {
    const std::string text = is_terminal_ ? PrintableLines(result) : result;
    if (fwrite(text.data(), 1, text.size(), output_) != text.size())
      return Status::FromErrno("cannot write the result", errno);
    return {};
  }

  // One line, whatever is in its cells.
  Status WriteLine(const std::string& line) {
    return Write((is_terminal_ ? Printable(line) : line) + "\n");
  }

 private:
  FILE* output_;
  bool is_terminal_;
};

class CsvPrinter : public Printer {
 public:
  CsvPrinter(FILE* output, std::string (*real_text)(double))
      : Printer(output), real_text_(real_text) {}

  Status BeginResult(const Statement& statement) override {
    std::string line;
    for (size_t i = 0; i < statement.column_count(); ++i)
      line += (i == 0 ? "" : ",") + Quoted(statement.column_name(i));
    return WriteLine(line);
  }

  Status AddRow(const Statement& statement) override {
    std::string line;
    for (size_t i = 0; i < statement.column_count(); ++i)
      line += (i == 0 ? "" : ",") + CellText(statement.At(i));
    return WriteLine(line);
  }

  Status EndResult() override { return {}; }

 private:
  static std::string Quoted(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : ToUtf8(text)) {
      if (c == '"')
        quoted += '"';
      quoted += c;
    }
    return quoted + "\"";
  }

  std::string CellText(const Cell& cell) const {
    switch (cell.kind) {
      case CellKind::kNull:
        return "\"[NULL]\"";
      case CellKind::kInteger:
        return std::to_string(cell.integer);
      case CellKind::kReal:
        return real_text_(cell.real);
      case CellKind::kText:
        return Quoted(cell.text);
    }
    return {};
  }

  std::string (*real_text_)(double);
};

class JsonPrinter : public Printer {
 public:
  using Printer::Printer;

  Status BeginResult(const Statement& statement) override {
    names_.clear();
    for (size_t i = 0; i < statement.column_count(); ++i)
      names_.push_back(Quoted(statement.column_name(i)));
    has_rows_ = false;
    return Write("[");
  }

  Status AddRow(const Statement& statement) override {
    std::string line = has_rows_ ? ",\n{" : "\n{";
    has_rows_ = true;
    for (size_t i = 0; i < statement.column_count(); ++i)
      line += (i == 0 ? "" : ",") + names_[i] + ":" + CellText(statement.At(i));
    return Write(line + "}");
  }

  Status EndResult() override { return Write("\n]\n"); }

 private:
  static std::string Quoted(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : ToUtf8(text)) {
      if (c == '"' || c == '\\') {
        quoted += '\\';
        quoted += c;
      } else if (static_cast<unsigned char>(c) < ' ') {
        char escape[8];
        snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
        quoted += escape;
      } else {
        quoted += c;
      }
    }
    return quoted + "\"";
  }

  static std::string CellText(const Cell& cell) {
    switch (cell.kind) {
      case CellKind::kNull:
        return "null";
      case CellKind::kInteger:
        return std::to_string(cell.integer);
      case CellKind::kReal:  // JSON has no infinity
        return std::isfinite(cell.real) ? RealText(cell.real) : "null";
      case CellKind::kText:
        return Quoted(cell.text);
    }
    return {};
  }

  std::vector<std::string> names_;
  bool has_rows_ = false;
};

// The first rows decide how wide the columns are.
class TablePrinter : public Printer {
 public:
  using Printer::Printer;

  Status BeginResult(const Statement& statement) override {
    rows_.clear();
    widths_.clear();
    is_number_.assign(statement.column_count(), true);
    row_count_ = 0;
    std::vector<std::string> names;
    for (size_t i = 0; i < statement.column_count(); ++i)
      names.push_back(Printable(ToUtf8(statement.column_name(i))));
    rows_.push_back(std::move(names));
    return {};
  }

  Status AddRow(const Statement& statement) override {
    ++row_count_;
    std::vector<std::string> row;
    for (size_t i = 0; i < statement.column_count(); ++i) {
      const Cell cell = statement.At(i);
      row.push_back(CellText(cell));
      if (widths_.empty() && cell.kind == CellKind::kText)
        is_number_[i] = false;
    }
    if (!widths_.empty())
      return WriteRow(row);
    rows_.push_back(std::move(row));
    return rows_.size() > kMeasuredRows ? Flush() : Status();
  }

  Status EndResult() override {
    if (widths_.empty())
      HPD_TRY(Flush());
    return Write("(" + std::to_string(row_count_) +
                 (row_count_ == 1 ? " row)\n" : " rows)\n"));
  }

 private:
  static constexpr size_t kMeasuredRows = 200;

  static std::string CellText(const Cell& cell) {
    switch (cell.kind) {
      case CellKind::kNull:
        return "[NULL]";
      case CellKind::kInteger:
        return std::to_string(cell.integer);
      case CellKind::kReal:
        return RealText(cell.real);
      case CellKind::kText:
        return Printable(ToUtf8(cell.text));
    }
    return {};
  }

  // Of UTF-8 text, in characters.
  static size_t Width(const std::string& text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    }));
  }

  Status Flush() {
    widths_.assign(rows_[0].size(), 1);
    for (const std::vector<std::string>& row : rows_) {
      for (size_t i = 0; i < row.size(); ++i)
        widths_[i] = std::max(widths_[i], Width(row[i]));
    }
    HPD_TRY(WriteRow(rows_[0]));
    std::string rule;
    for (size_t i = 0; i < widths_.size(); ++i)
      rule += (i == 0 ? "" : "  ") + std::string(widths_[i], '-');
    HPD_TRY(Write(rule + "\n"));
    for (size_t i = 1; i < rows_.size(); ++i)
      HPD_TRY(WriteRow(rows_[i]));
    rows_.clear();
    return {};
  }

  Status WriteRow(const std::vector<std::string>& row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const size_t width = Width(row[i]);
      const std::string padding(width < widths_[i] ? widths_[i] - width : 0, ' ');
      const bool is_last = i + 1 == row.size();
      line += i == 0 ? "" : "  ";
      line += is_number_[i] ? padding + row[i] : row[i] + (is_last ? "" : padding);
    }
    return Write(line + "\n");
  }

  std::vector<std::vector<std::string>> rows_;  // until widths_ is known; names first
  std::vector<size_t> widths_;
  std::vector<bool> is_number_;
  uint64_t row_count_ = 0;
};

}  // namespace

std::unique_ptr<ResultSink> MakeResultPrinter(ResultFormat format, FILE* output) {
  switch (format) {
    case ResultFormat::kCsv:
      return std::make_unique<CsvPrinter>(output, RealText);
    case ResultFormat::kPerfettosCsv:
      return std::make_unique<CsvPrinter>(output, SixDecimals);
    case ResultFormat::kJson:
      return std::make_unique<JsonPrinter>(output);
    case ResultFormat::kTable:
      break;
  }
  return std::make_unique<TablePrinter>(output);
}

}  // namespace heapprofd
