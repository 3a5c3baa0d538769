# Field numbers of a .proto file as a C++ header: a struct per message, in it a constant per field, kIid for "iid". For code
# that reads and writes messages field by field, for which protoc has no output.
# Use: awk -v space=NAMESPACE -f proto_fields.awk FILE.proto >HEADER

function camel(name,   words, n, i, text) {
  n = split(name, words, "_")
  for (i = 1; i <= n; ++i)
    text = text toupper(substr(words[i], 1, 1)) substr(words[i], 2)
  return text
}

BEGIN { print "#pragma once\n#include <cstdint>\nnamespace " space " {" }

{ sub(/[ \t]*\/\/.*/, "") }
/^ *(message|oneof|enum) / {
  kind[++depth] = $1
  if ($1 == "message")
    print "struct " $2 " {"
  next
}
/^ *}/ {
  if (kind[depth--] == "message")
    print "};"
  next
}
depth > 0 && kind[depth] != "enum" && match($0, /[a-z0-9_]+ = [0-9]+/) {
  split(substr($0, RSTART, RLENGTH), field, " = ")
  print "static constexpr uint32_t k" camel(field[1]) " = " field[2] ";"
}

END { print "}  // namespace " space }
