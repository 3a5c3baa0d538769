#!/bin/sh
# Manual pages of the commands of heap_profile, for each that its help lists: of what it says with --help. Prints the
# names of the commands.
#   command_pages.sh PROGRAM FOLDER VERSION
set -eu
program=$1 folder=$2 version=$3
page=$(dirname "$0")/manual_page.awk
mkdir -p "$folder"
rm -f "$folder"/heap_profile-*  # those of commands that are no more
for command in $("$program" --help | sed -n '/^commands:$/,/^$/s/^  \([a-z_]*\) .*/\1/p'); do
  name=heap_profile-$command
  "$program" "$command" --help >"$folder/$name.help"
  awk -f "$page" -v name="$name" -v section=1 -v version="$version" "$folder/$name.help" >"$folder/$name.1"
  rm "$folder/$name.help"
  echo "$command"
done
