// ReadHeader finds the tables of directories and files (ReadOldNames before version 5,
// ReadNames from then on) and the program behind them. Run executes it: each row that it
// emits closes the range that the row before it has begun, and the addresses asked for,
// which are sorted, are looked up in that range by a cursor that only goes back where the
// program does. Source of the format: DWARF 5, section 6.2.
#include "symbolize/dwarf/line_table.h"

#include <dwarf.h>
#include <gelf.h>

#include <algorithm>
#include <cstring>

#include "base/byte_reader.h"
#include "symbolize/dwarf/abbreviations.h"

namespace heapprofd {

// Values that stand in the header of a line number program, version 5.
class FormReader {
 public:
  FormReader(const LineSections& sections, std::string_view bytes, uint8_t offset_size)
      : sections_(sections) {
    unit_.begin = static_cast<const uint8_t*>(static_cast<const void*>(bytes.data()));
    unit_.end = unit_.begin + bytes.size();
    unit_.offset_size = offset_size;
    unit_.version = 5;
    at_ = unit_.begin;
  }

  bool ReadNumber(uint64_t& value) { return ReadUleb(at_, unit_.end, value); }

  bool ReadByte(uint8_t& value) {
    if (at_ == unit_.end)
      return false;
    value = *at_++;
    return true;
  }

  // Reads a value of any form: a text or a number, if it is one.
  bool ReadValue(unsigned form, const char*& text, uint64_t& number) {
    const uint8_t* value = at_;
    if (!SkipForm(unit_, form, at_) || at_ == value)
      return false;
    number = 0;
    text = nullptr;
    const auto size = static_cast<size_t>(at_ - value);
    if (form == DW_FORM_string)
      text = static_cast<const char*>(static_cast<const void*>(value));
    else if (form == DW_FORM_udata)
      ReadUleb(value, unit_.end, number);
    else if (size <= sizeof(number))
      memcpy(&number, value, size);
    if (form == DW_FORM_line_strp && number < sections_.line_strings.size())
      text = sections_.line_strings.data() + number;
    else if (form == DW_FORM_strp && number < sections_.strings.size())
      text = sections_.strings.data() + number;
    return true;
  }

 private:
  const LineSections& sections_;
  UnitBytes unit_;
  const uint8_t* at_;
};

namespace {

uint64_t ReadUlebFrom(ByteReader& reader) {
  uint64_t value = 0;
  for (unsigned shift = 0; reader.ok() && shift < 64; shift += 7) {
    const auto byte = reader.Read<uint8_t>();
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80)
      break;
  }
  return value;
}

int64_t ReadSlebFrom(ByteReader& reader) {
  uint64_t value = 0;
  unsigned shift = 0;
  uint8_t byte = 0x80;
  while (reader.ok() && shift < 64 && byte >= 0x80) {
    byte = reader.Read<uint8_t>();
    value |= uint64_t{byte & 0x7fu} << shift;
    shift += 7;
  }
  if (shift < 64 && (byte & 0x40) != 0)
    value |= ~uint64_t{0} << shift;
  return static_cast<int64_t>(value);
}

uint64_t ReadOffset(ByteReader& reader, uint8_t size) {
  return size == 8 ? reader.Read<uint64_t>() : reader.Read<uint32_t>();
}

}  // namespace

LineSections LineSections::Of(Dwarf* dwarf) {
  LineSections found;
  Elf* elf = dwarf_getelf(dwarf);
  size_t names = 0;
  if (elf == nullptr || elf_getshdrstrndx(elf, &names) != 0)
    return found;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    const char* text = gelf_getshdr(section, &header) == nullptr
                           ? nullptr
                           : elf_strptr(elf, names, header.sh_name);
    if (text == nullptr || header.sh_type == SHT_NOBITS ||
        (header.sh_flags & SHF_COMPRESSED) != 0)
      continue;
    std::string_view name(text);
    name.remove_prefix(name.starts_with(".z") ? 2 : std::min<size_t>(1, name.size()));
    std::string_view* wanted = name == "debug_line"       ? &found.programs
                               : name == "debug_line_str" ? &found.line_strings
                               : name == "debug_str"      ? &found.strings
                                                          : nullptr;
    const Elf_Data* data = wanted != nullptr ? elf_rawdata(section, nullptr) : nullptr;
    if (data != nullptr && data->d_buf != nullptr)
      *wanted = {static_cast<const char*>(data->d_buf), data->d_size};
  }
  return found;
}

LineTable::LineTable(Dwarf_Die unit,
                     const LineSections& sections,
                     std::span<const uint64_t> addresses)
    : sections_(sections), answers_(addresses.size()) {
  Dwarf_Attribute attribute;
  Dwarf_Word offset = 0;
  if (dwarf_formudata(dwarf_attr(&unit, DW_AT_stmt_list, &attribute), &offset) != 0 ||
      offset >= sections.programs.size())
    return;
  if (const char* text = dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &attribute)))
    compilation_directory_ = text;
  Program program;
  if (ReadHeader(sections.programs.substr(offset), program))
    Run(program, addresses);
}

bool LineTable::ReadHeader(std::string_view table, Program& program) {
  ByteReader reader(table);
  uint64_t length = reader.Read<uint32_t>();
  if (length == UINT32_MAX) {
    program.offset_size = 8;
    length = reader.Read<uint64_t>();
  }
  ByteReader unit(reader.ReadBytes(length));
  if (!reader.ok())
    return false;
  program.version = version_ = unit.Read<uint16_t>();
  if (version_ < 2 || version_ > 5)
    return false;
  if (version_ == 5)
    unit.Read<uint16_t>();  // sizes of addresses and of segment selectors
  ByteReader header(unit.ReadBytes(ReadOffset(unit, program.offset_size)));
  program.code = unit.ReadBytes(unit.left());
  program.minimum_step = header.Read<uint8_t>();
  if (version_ >= 4)
    header.Read<uint8_t>();  // operations per instruction: 1 but for VLIW machines
  header.Read<uint8_t>();    // is_stmt
  program.line_base = header.Read<int8_t>();
  program.line_range = header.Read<uint8_t>();
  program.opcode_base = header.Read<uint8_t>();
  if (!unit.ok() || !header.ok() || program.line_range == 0 || program.opcode_base == 0)
    return false;
  program.operand_counts = header.ReadBytes(program.opcode_base - 1u);
  const std::string_view names = header.ReadBytes(header.left());
  return header.ok() &&
         (version_ == 5 ? ReadNames(names, program.offset_size) : ReadOldNames(names));
}

// Versions 2 to 4: numbers begin with 1, directory 0 is that of the compilation.
bool LineTable::ReadOldNames(std::string_view names) {
  ByteReader reader(names);
  directories_.push_back(compilation_directory_);
  files_.push_back({nullptr, 0, nullptr});
  while (true) {
    const std::string_view directory = reader.ReadCString();
    if (directory.empty())
      break;
    directories_.push_back(directory.data());
  }
  while (reader.ok()) {
    const std::string_view name = reader.ReadCString();
    if (name.empty())
      break;
    files_.push_back({name.data(), ReadUlebFrom(reader), nullptr});
    ReadUlebFrom(reader);  // time
    ReadUlebFrom(reader);  // size
  }
  return reader.ok();
}

bool LineTable::ReadNames(std::string_view names, uint8_t offset_size) {
  FormReader reader(sections_, names, offset_size);
  return ReadEntries(reader, false) && ReadEntries(reader, true);
}

bool LineTable::ReadEntries(FormReader& reader, bool are_files) {
  uint8_t format_count = 0;
  uint64_t count = 0;
  std::vector<std::pair<uint64_t, uint64_t>> formats;
  if (!reader.ReadByte(format_count))
    return false;
  for (unsigned i = 0; i < format_count; ++i) {
    auto& [type, form] = formats.emplace_back();
    if (!reader.ReadNumber(type) || !reader.ReadNumber(form))
      return false;
  }
  if (!reader.ReadNumber(count))
    return false;
  for (uint64_t i = 0; i < count && !formats.empty(); ++i) {
    File file{nullptr, 0, nullptr};
    for (const auto& [type, form] : formats) {
      const char* text = nullptr;
      uint64_t number = 0;
      if (!reader.ReadValue(static_cast<unsigned>(form), text, number))
        return false;
      if (type == DW_LNCT_path)
        file.name = text;
      else if (type == DW_LNCT_directory_index)
        file.directory = number;
    }
    if (are_files)
      files_.push_back(file);
    else
      directories_.push_back(file.name);
  }
  return true;
}

// NOLINTNEXTLINE(readability-function-size)
void LineTable::Run(const Program& program, std::span<const uint64_t> addresses) {
  ByteReader code(program.code);
  Row row{.address = 0, .file = 1, .line = 1};
  Row last;  // of the sequence
  bool has_last = false;
  size_t next = 0;  // first address not below `last`
  const auto emit = [&] {
    if (!has_last || row.address < last.address)
      next = static_cast<size_t>(std::ranges::lower_bound(addresses, row.address) -
                                 addresses.begin());
    for (; has_last && next < addresses.size() && addresses[next] < row.address; ++next)
      answers_[next] = {.file = last.file, .line = last.line, .is_known = true};
    // What the linker has dropped begins at 0.
    has_last = has_last || row.address != 0;
    last = row;
  };
  while (code.left() > 0 && code.ok()) {
    const auto opcode = code.Read<uint8_t>();
    if (opcode >= program.opcode_base) {
      const unsigned step = static_cast<unsigned>(opcode - program.opcode_base);
      row.address += uint64_t{step / program.line_range} * program.minimum_step;
      row.line += static_cast<uint32_t>(program.line_base +
                                        static_cast<int>(step % program.line_range));
      emit();
      continue;
    }
    switch (opcode) {
      case 0: {  // extended
        ByteReader operands(code.ReadBytes(ReadUlebFrom(code)));
        const auto extended = operands.Read<uint8_t>();
        if (extended == DW_LNE_end_sequence) {
          emit();
          row = {.address = 0, .file = 1, .line = 1};
          has_last = false;
        } else if (extended == DW_LNE_set_address) {
          row.address = operands.left() == 8 ? operands.Read<uint64_t>()
                                             : operands.Read<uint32_t>();
        }
        break;
      }
      case DW_LNS_copy:
        emit();
        break;
      case DW_LNS_advance_pc:
        row.address += ReadUlebFrom(code) * program.minimum_step;
        break;
      case DW_LNS_advance_line:
        row.line += static_cast<uint32_t>(ReadSlebFrom(code));
        break;
      case DW_LNS_set_file:
        row.file = ReadUlebFrom(code);
        break;
      case DW_LNS_const_add_pc:
        row.address += uint64_t{(255u - program.opcode_base) / program.line_range} *
                       program.minimum_step;
        break;
      case DW_LNS_fixed_advance_pc:
        row.address += code.Read<uint16_t>();
        break;
      default:
        for (auto i = static_cast<uint8_t>(program.operand_counts[opcode - 1u]); i > 0;
             --i)
          ReadUlebFrom(code);
        break;
    }
  }
}

SourcePosition LineTable::Find(size_t index) const {
  const Answer& answer = answers_[index];
  if (!answer.is_known)
    return {};
  return {.file = FileName(answer.file), .line = answer.line};
}

const char* LineTable::FileName(uint64_t number) const {
  if (number >= files_.size() || files_[number].name == nullptr)
    return nullptr;
  File& file = files_[number];
  if (file.full_name != nullptr)
    return file.full_name;
  const char* directory =
      file.directory < directories_.size() ? directories_[file.directory] : nullptr;
  std::string name = file.name;
  if (!name.starts_with('/') && directory != nullptr)
    name = std::string(directory) + "/" + name;
  if (!name.starts_with('/') && *compilation_directory_ != '\0')
    name = std::string(compilation_directory_) + "/" + name;
  file.full_name = full_names_.emplace_back(std::move(name)).c_str();
  return file.full_name;
}

}  // namespace heapprofd
