# Shared by the scripts in this folder: finds out which Debian packages are missing and installs them where
# that is allowed. Never asks.

hpd_script=$(realpath "$0")
hpd_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# The comment at the head of the script.
hpd_usage() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$hpd_script"; }

# For -h and --help that is all.
hpd_help() {
  case ${1:-} in -h | --help) ;; *) return 0 ;; esac
  hpd_usage
  exit 0
}

# Names of the packages in the given sections of packages.txt.
hpd_packages() {
  awk -v wanted=" $* " '/^\[/ { section = substr($0, 2, length($0) - 2); next }
    /^[^#]/ && index(wanted, " " section " ") { print }' "$hpd_root/tools/packages.txt"
}

# Installs what is missing of the given sections, or says in one line what to install.
hpd_require_packages() {
  local missing=() name sudo=()
  for name in $(hpd_packages "$@"); do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if [ "$(id -u)" -ne 0 ]; then
    sudo=(sudo -n)
    if ! sudo -n true 2>/dev/null; then
      echo "cannot build heap_profile: missing Debian packages: ${missing[*]}; install them with: sudo apt-get install -y ${missing[*]}" >&2
      return 1
    fi
  fi
  echo "heap_profile: installing ${missing[*]}" >&2
  local log
  log=$(mktemp)
  # Services that a package brings are not started: the tests start their own.
  if ! { "${sudo[@]}" apt-get update -qq &&
         "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq \
           --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "cannot install ${missing[*]}: apt-get failed; see the lines above" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

# Debian 12, with the packages of a section, as a folder made by mmdebstrap with the options given; again when the list
# changes: hpd_fetch_debian FOLDER SECTION [OPTION...]
hpd_fetch_debian() {
  local folder=$1 list
  list=$(hpd_packages "$2" | paste -sd,)
  shift 2
  [ "$(cat "$folder/libraries" 2>/dev/null)" != "$list" ] || return 0
  rm -rf "$folder"
  mkdir -p "$(dirname "$folder")"
  timeout --foreground 1800 mmdebstrap --quiet --aptopt='Acquire::Retries "5"' "$@" --include="$list" bookworm "$folder"
  echo "$list" >"$folder/libraries"
}

# Configures and builds a preset: hpd_build PRESET [TARGET...]. Quiet unless it fails.
hpd_build() {
  local preset=$1 log
  shift
  log=$(mktemp)
  if ! (cd "$hpd_root" && cmake --preset "$preset" && cmake --build --preset "$preset" ${1:+--target "$@"}) \
       >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    rm -f "$log"
    echo "cannot build the $preset preset: see the lines above" >&2
    return 1
  fi
  rm -f "$log"
}
