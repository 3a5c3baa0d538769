// Rules against an independent reader of the same call frame information: readelf's
// interpreted frames of the C and C++ libraries.
#include "unwind/cfi_rules.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace heapprofd {
namespace {

#if defined(__x86_64__)
constexpr const char* kSpName = "rsp";
constexpr const char* kBpName = "rbp";
#else
constexpr const char* kSpName = "sp";
constexpr const char* kBpName = "x29";
#endif

struct Row {
  uint64_t location = 0;
  uint64_t size = 0;  // bytes up to the next row or the end of the function
  std::string cfa;    // "rsp+16", "exp"
  std::string bp;     // "c-16", "u", "" without a column
  std::string ra;     // "c-8", "u"
  bool is_signal = false;
};

std::string PathOf(const char* library) {
  struct Search {
    const char* name;
    std::string path;
  } search{library, ""};

  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* argument) {
        auto* wanted = static_cast<Search*>(argument);
        if (strstr(info->dlpi_name, wanted->name) != nullptr)
          wanted->path = info->dlpi_name;
        return 0;
      },
      &search);
  return search.path;
}

// Reads the text that readelf prints: CIE and FDE headings, a line of column names, rows.
class RowReader {
 public:
  void Add(const std::string& line) {
    std::istringstream words(line);
    std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
    std::erase_if(fields, [](const std::string& field) {
      return field.starts_with('(');  // "r9 (r9)": saved in another register
    });
    if (line.find(" CIE ") != std::string::npos) {
      in_fde_ = false;
      if (line.find('S', line.find('"')) != std::string::npos)
        signal_cies_.insert(fields[0]);
    } else if (const size_t pc = line.find("pc="); pc != std::string::npos) {
      in_fde_ = true;
      end_ = std::stoull(line.substr(line.find("..") + 2), nullptr, 16);
      const size_t cie = line.find("cie=") + 4;
      is_signal_ = signal_cies_.contains(line.substr(cie, pc - cie - 1));
      is_first_ = true;
    } else if (!fields.empty() && fields[0] == "LOC") {
      columns_ = fields;
    } else if (line.find("ZERO terminator") != std::string::npos) {
      in_fde_ = false;
    } else if (in_fde_ && fields.size() == columns_.size() && fields.size() >= 3) {
      AddRow(fields);
    }
  }

  std::vector<Row> rows;

 private:
  void AddRow(const std::vector<std::string>& fields) {
    Row row{.location = std::stoull(fields[0], nullptr, 16),
            .size = 0,
            .cfa = fields[1],
            .bp = "",
            .ra = "",
            .is_signal = is_signal_};
    for (size_t i = 2; i < fields.size(); ++i) {
      if (columns_[i] == kBpName)
        row.bp = fields[i];
      else if (columns_[i] == "ra")
        row.ra = fields[i];
    }
    row.size = end_ > row.location ? end_ - row.location : 0;
    if (!is_first_)
      rows.back().size = row.location - rows.back().location;
    is_first_ = false;
    rows.push_back(row);
  }

  std::set<std::string> signal_cies_;
  std::vector<std::string> columns_;
  uint64_t end_ = 0;
  bool in_fde_ = false;
  bool is_signal_ = false;
  bool is_first_ = true;
};

std::vector<Row> RowsOf(const std::string& path) {
  const std::string command = "LC_ALL=C readelf -wNF '" HPD_TEST_ROOT + path +
                              "' 2>/dev/null";  // N: this file's sections only
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  RowReader reader;
  char line[1024];
  while (pipe != nullptr && fgets(line, sizeof(line), pipe.get()) != nullptr)
    reader.Add(line);
  return reader.rows;
}

bool IsUnchanged(const std::string& place) {
  return place.empty() || place == "u" || place == "s";
}

// "c-16" as a number of words.
uint32_t SlotOf(const std::string& place) {
  return place.starts_with("c-") ? static_cast<uint32_t>(std::stoul(place.substr(2)) / 8)
                                 : 0;
}

// What a row of plain register rules stands for.
Rule CfaOf(const Row& row) {
  const size_t sign = row.cfa.find('+');
  const std::string reg = row.cfa.substr(0, sign);
  if (sign == std::string::npos || (reg != kSpName && reg != kBpName) ||
      !(IsUnchanged(row.bp) || row.bp.starts_with("c-")))
    return {.kind = RuleKind::kUnwalkable};
  return {.kind = reg == kSpName ? RuleKind::kSp : RuleKind::kBp,
          .cfa_offset = std::stoi(row.cfa.substr(sign + 1)),
          .bp_slot = SlotOf(row.bp)};
}

#if defined(__x86_64__)
bool IsExpected(const Rule& rule, const Row& row) {
  if (row.is_signal)
    return rule == Rule{.kind = RuleKind::kSignal};
  if (row.ra == "u")
    return rule == Rule{.kind = RuleKind::kEnd};
  if (row.cfa == "exp" && row.ra == "c-8")
    return rule.kind == RuleKind::kSp || rule.kind == RuleKind::kBpDeref ||
           rule.kind == RuleKind::kUnwalkable;
  return rule == (row.ra == "c-8" ? CfaOf(row) : Rule{.kind = RuleKind::kUnwalkable});
}
#else
// readelf shows what is undefined as it shows what is unchanged.
bool IsExpected(const Rule& rule, const Row& row) {
  if (row.is_signal)
    return rule == Rule{.kind = RuleKind::kUnwalkable};
  if (row.ra == "u" && rule == Rule{.kind = RuleKind::kEnd})
    return true;
  if (!IsUnchanged(row.ra) && !row.ra.starts_with("c-"))
    return rule == Rule{.kind = RuleKind::kUnwalkable};  // in another register
  Rule expected = CfaOf(row);
  if (expected.kind != RuleKind::kUnwalkable)
    expected.return_slot = SlotOf(row.ra);
  return rule == (IsEncodable(expected) ? expected : Rule{.kind = RuleKind::kUnwalkable});
}
#endif

std::string Text(const Rule& rule) {
  return std::to_string(static_cast<int>(rule.kind)) + " " +
         std::to_string(rule.cfa_offset) + " " + std::to_string(rule.bp_slot);
}

void ExpectRulesOf(const char* library, size_t min_rows) {
  const std::string path = PathOf(library);
  ASSERT_FALSE(path.empty());
  const std::shared_ptr<Module> module =
      Module::Open(ScopedFd(open(path.c_str(), O_RDONLY | O_CLOEXEC)));
  ASSERT_NE(module, nullptr);
  const std::vector<Row> rows = RowsOf(path);
  ASSERT_GE(rows.size(), min_rows) << "is readelf installed?";
  size_t compared = 0;
  size_t walkable = 0;
  for (const Row& row : rows) {
    if (row.size == 0)
      continue;
    for (const uint64_t pc : {row.location, row.location + row.size - 1}) {
      const Rule rule = RuleForAddress(*module, pc);
      walkable += rule.kind != RuleKind::kUnwalkable ? 1u : 0u;
      ++compared;
      EXPECT_TRUE(IsExpected(rule, row)) << std::hex << pc << " " << row.cfa << " "
                                         << row.bp << " " << row.ra << ": " << Text(rule);
    }
  }
  EXPECT_GE(compared, min_rows);
  EXPECT_GE(walkable, compared * 99 / 100);  // the target walks nearly everything itself
}

TEST(CfiRulesTest, RulesOfTheCLibraryAreThoseOfReadelf) {
  ExpectRulesOf("libc.so.6", 10'000);
}

TEST(CfiRulesTest, RulesOfTheCxxLibraryAreThoseOfReadelf) {
  ExpectRulesOf("libstdc++.so.6", 10'000);
}

TEST(CfiRulesTest, AddressesOutsideEveryFunctionHaveNoRule) {
  const std::shared_ptr<Module> module =
      Module::Open(ScopedFd(open(PathOf("libc.so.6").c_str(), O_RDONLY | O_CLOEXEC)));
  ASSERT_NE(module, nullptr);
  for (const uint64_t pc : {uint64_t{0}, uint64_t{64}, uint64_t{1} << 40, UINT64_MAX})
    EXPECT_EQ(RuleForAddress(*module, pc).kind, RuleKind::kUnknown) << pc;
}

TEST(CfiRulesTest, WhatIsNoElfImageIsNoModule) {
  EXPECT_EQ(Module::Open(ScopedFd()), nullptr);
  EXPECT_EQ(Module::Open(ScopedFd(open("/dev/null", O_RDONLY | O_CLOEXEC))), nullptr);
  EXPECT_EQ(Module::Open(ScopedFd(open("/proc/self/maps", O_RDONLY | O_CLOEXEC))),
            nullptr);
  EXPECT_EQ(Module::Open(ScopedFd(open("/", O_RDONLY | O_CLOEXEC))), nullptr);
  EXPECT_EQ(Module::FromMemory({}), nullptr);
  EXPECT_EQ(Module::FromMemory({'\x7f', 'E', 'L', 'F', 2, 1, 1}), nullptr);
}

}  // namespace
}  // namespace heapprofd
