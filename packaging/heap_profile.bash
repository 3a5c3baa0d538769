# bash completion of heap_profile, heapprofd and their other names. Each command is asked with --help what it takes, so
# that there is nothing here to be kept true.

# Words of the usage that may stand where the command line is now: of "heap_profile hprof leaks FILE" leaks, behind
# "heap_profile hprof"; and those that the help has a list of: commands, modes, verbs. $1: what has been typed, without
# the word at the cursor.
_heap_profile_words() {
  sed -n 's/^usage: /       /; s/^       //p' <<<"$2" |
    awk -v typed="$1" '{ sub(/ -p PID[|]-n NAME/, "") } index($0, typed " ") == 1 {
      split(substr($0, length(typed) + 2), word, " ")
      gsub(/[][]/, "", word[1])
      count = split(word[1], either, "|")
      for (i = 1; i <= count; ++i)
        if (either[i] ~ /^[a-z_]+$/) print either[i]
    }'
  sed -n '/^\(commands\|modes\|verbs\|views\):$/,/^$/s/^  \([a-z_]*\) .*/\1/p' <<<"$2"
}

_heap_profile() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} i help typed words
  local command=${COMP_WORDS[0]}
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      mapfile -t COMPREPLY < <(compgen -c -f -- "$current")
      return
    fi
  done
  help=$("$command" --help 2>/dev/null </dev/null)
  typed=${command##*/}
  if ((COMP_CWORD > 1)) && grep -qxF -- "${COMP_WORDS[1]}" <<<"$(_heap_profile_words "$typed" "$help")"; then
    help=$("$command" "${COMP_WORDS[1]}" --help 2>/dev/null </dev/null)
    typed+=" ${COMP_WORDS[1]}"
  fi
  # An option that takes a value: a path or what nobody can guess.
  if [[ $previous =~ ^--?[a-zA-Z-]+$ ]]; then
    case $(grep -oE -- "^ +(-., )?$previous(, --[a-z-]+)? [][A-Z=]+" <<<"$help" | head -n 1) in
      *DIRECTORY* | *FILE* | *PATH*) mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
      *[A-Z]*) return ;;
    esac
  fi
  if [[ $current == -* ]]; then
    words=$(grep -oE -- '^([a-z]+:)? +(-[^ ]+, )*--[a-z-]+' <<<"$help" | grep -oE -- '--[a-z-]+')
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$(_heap_profile_words "$typed" "$help")" -- "$current")
  [[ ${#COMPREPLY[@]} -gt 0 ]] || mapfile -t COMPREPLY < <(compgen -f -- "$current")
}

complete -o filenames -F _heap_profile heap_profile heapprofd traceconv trace_processor_shell perfetto hprof-conv java_heap_dump
