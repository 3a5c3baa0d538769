#include "symbolize/demangle.h"

// libiberty declares a basename() of its own, unlike that of <cstring>, unless told that
// there is one.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <memory>

namespace heapprofd {
namespace {

// libiberty itself refuses C++ names over 1024 bytes unless its guard against deep
// recursion is switched off, so longer inputs are only worth a try for Rust and D.
constexpr size_t kMaxMangledLength = 4096;
// A name of a few hundred bytes can stand for a text of 2^100 (each substitution
// repeating two others).
constexpr size_t kMaxDemangledLength = size_t{16} * 1024;
// Longer short names lose their template arguments.
constexpr size_t kMaxShortLength = 96;

// Collects what the demangler prints, and leaves it by longjmp when that is too much: its
// callback cannot say stop. Safe because libiberty's callback functions are plain C that
// keep their state on the stack.
struct Printer {
  std::jmp_buf too_long;
  size_t length = 0;
  std::array<char, kMaxDemangledLength> text;
};

void Print(const char* text, size_t length, void* opaque) {
  auto* printer = static_cast<Printer*>(opaque);
  if (length == 0)
    return;  // `text` may be null then
  if (length > printer->text.size() - printer->length)
    std::longjmp(printer->too_long, 1);
  memcpy(printer->text.data() + printer->length, text, length);
  printer->length += length;
}

using CallbackDemangler = int (*)(const char*, int, demangle_callbackref, void*);

// Empty when `mangled` is no name of this scheme. Holds no object with a destructor: see
// Printer.
std::string_view RunDemangler(CallbackDemangler demangle,
                              const char* mangled,
                              int options,
                              Printer* printer) {
  if (setjmp(printer->too_long) != 0)
    return {};
  printer->length = 0;
  if (demangle(mangled, options, &Print, printer) == 0)
    return {};
  return {printer->text.data(), printer->length};
}

std::string DemangleBy(CallbackDemangler demangle, std::string_view name, int options) {
  if (name.size() > kMaxMangledLength)
    return {};
  const auto printer = std::make_unique<Printer>();
  return std::string(
      RunDemangler(demangle, std::string(name).c_str(), options, printer.get()));
}

// Legacy names look like C++ with a hash at the end: to be tried before DemangleCxx.
std::string DemangleRust(std::string_view name) {
  if (!name.starts_with("_R") && !name.starts_with("_ZN"))
    return {};
  return DemangleBy(rust_demangle_callback, name, DMGL_NO_OPTS);
}

std::string DemangleCxx(std::string_view name, int options) {
  if (!name.starts_with("_Z") && !name.starts_with("_GLOBAL_"))
    return {};
  return DemangleBy(cplus_demangle_v3_callback, name, options);
}

std::string DemangleD(std::string_view name) {
  if (name.size() > kMaxMangledLength || !name.starts_with("_D"))
    return {};
  const std::unique_ptr<char, void (*)(void*)> text(
      dlang_demangle(std::string(name).c_str(), DMGL_PARAMS), &free);
  if (!text || strlen(text.get()) > kMaxDemangledLength)
    return {};
  return text.get();
}

bool IsIdentifierCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         c == '_';
}

// Length of an operator's name at the start of `text` ("operator<", "operator->", ...),
// else 0.
size_t OperatorLength(std::string_view text) {
  constexpr std::string_view kWord = "operator";
  constexpr std::array<std::string_view, 9> kSymbols = {"<=>", "<<=", ">>=", "->*", "<<",
                                                        ">>",  "->",  "<=",  ">="};
  if (!text.starts_with(kWord))
    return 0;
  const std::string_view symbol = text.substr(kWord.size());
  const auto* found = std::ranges::find_if(kSymbols, [&](std::string_view candidate) {
    return symbol.starts_with(candidate);
  });
  if (found != kSymbols.end())
    return kWord.size() + found->size();
  return symbol.starts_with('<') || symbol.starts_with('>') ? kWord.size() + 1 : 0;
}

// "a<b<c> >::d" becomes "a<...>::d". Returns the name unchanged when its brackets do not
// match.
std::string WithoutTemplateArguments(std::string_view name) {
  std::string text;
  size_t depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool word_start = i == 0 || !IsIdentifierCharacter(name[i - 1]);
    const size_t operator_length = word_start ? OperatorLength(name.substr(i)) : 0;
    if (operator_length != 0) {
      if (depth == 0)
        text += name.substr(i, operator_length);
      i += operator_length - 1;
      continue;
    }
    const bool arrow = name[i] == '>' && i > 0 && name[i - 1] == '-';
    if (name[i] == '<' && depth++ == 0)
      text += "<...";
    if (name[i] == '>' && !arrow) {
      if (depth == 0)
        return std::string(name);
      --depth;
    }
    if (depth == 0)
      text += name[i];
  }
  return depth == 0 ? text : std::string(name);
}

}  // namespace

std::string Demangle(std::string_view system_name) {
  std::string text = DemangleRust(system_name);
  if (text.empty())
    text = DemangleCxx(system_name, DMGL_PARAMS | DMGL_ANSI);
  if (text.empty())
    text = DemangleD(system_name);
  return text.empty() ? std::string(system_name) : text;
}

std::string ShortName(std::string_view system_name) {
  if (!DemangleRust(system_name).empty())
    return Demangle(system_name);
  std::string text = DemangleCxx(system_name, DMGL_ANSI | DMGL_RET_DROP);
  if (text.empty())
    return Demangle(system_name);
  return text.size() > kMaxShortLength ? WithoutTemplateArguments(text) : text;
}

}  // namespace heapprofd
