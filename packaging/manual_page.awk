# A manual page of what a command says with --help, so that the two never tell different stories:
#
#   heap_profile query --help | awk -f manual_page.awk -v name=heap_profile-query -v section=1 -v version=0.1.0
#
# Help is a paragraph that says what the command does, "usage:", groups of options below a word with a colon, and
# paragraphs. Options are indented by at most 10 columns and are followed by two blanks or the end of the line, what is
# said of them further.

function troff(text) {
  gsub(/\\/, "\\e", text)
  gsub(/-/, "\\-", text)
  if (text ~ /^[.']/)
    text = "\\&" text
  return text
}

function indent_of(line) {
  match(line, /^ */)
  return RLENGTH
}

function heading(text) {
  body = body ".SH " toupper(troff(text)) "\n"
  has_group = 1
}

# "-o, --output FILE  Write here."
function option(text,    at) {
  at = match(text, /  /)
  body = body ".TP\n.B " troff(at ? substr(text, 1, at - 1) : text) "\n"
  if (at) {
    text = substr(text, at)
    sub(/^ */, "", text)
    body = body troff(text) "\n"
  }
}

function in_lines(is_so) {
  if (is_so != as_lines)
    body = body (is_so ? ".PP\n.nf\n" : ".fi\n")
  as_lines = is_so
}

function paragraph_line(line) {
  if (!in_paragraph && summary == "") {
    in_summary = 1
  } else if (!in_paragraph) {
    if (has_group && !has_notes)
      body = body ".SH NOTES\n"
    has_notes = has_group
    body = body ".PP\n"
  }
  in_paragraph = 1
  if (in_summary)
    summary = summary (summary == "" ? "" : " ") line
  else
    body = body troff(line) "\n"
}

/^$/ { in_lines(0); in_paragraph = in_summary = in_usage = 0; next }
/^usage: / { in_usage = 1; usage = troff(substr($0, 8)) "\n"; next }
in_usage { sub(/^ */, ""); usage = usage troff($0) "\n"; next }
/^[a-z ]+:$/ { heading(substr($0, 1, length($0) - 1)); next }
/^[a-z ]+: +--/ { at = index($0, ":"); heading(substr($0, 1, at - 1)); $0 = substr($0, at + 1); sub(/^ */, ""); option($0); next }
/^[^ ]/ { in_lines(0); paragraph_line($0); next }
in_paragraph { in_lines(1); body = body troff($0) "\n"; next }
indent_of($0) == 2 || (indent_of($0) <= 10 && $1 ~ /^-./) {
  if (!has_group)
    heading("commands")
  sub(/^ */, "")
  option($0)
  next
}
{ sub(/^ */, ""); body = body troff($0) "\n" }

END {
  if (summary == "" || usage == "") {
    print "cannot make the manual page of " name ": its help has no summary or no usage" > "/dev/stderr"
    exit 1
  }
  sub(/\.$/, "", summary)
  printf ".TH %s %s \"\" \"heapprofd %s\"\n", troff(name), section, version
  printf ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.nf\n%s.fi\n", troff(name), troff(summary), usage
  print (body == "" || body ~ /^\.SH/ ? "" : ".SH DESCRIPTION\n") body ".SH SEE ALSO"
  print ".BR heap_profile (1),\n.BR heapprofd (8);\n.I /usr/share/doc/heapprofd/README.md"
}
