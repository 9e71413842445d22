# shellcheck shell=bash
# Sourced by scripts/run, scripts/test and scripts/docs, which set `root`: a Python environment in .venv, made once and
# kept up to date with pyproject.toml.
#
# .venv/.stamp says what is installed: a key in the first line, the extras in the second. While something is being
# installed the key is "unfinished"; an environment found like that was interrupted and is made anew.

venv=${root:?}/.venv
stamp=$venv/.stamp

say() { printf 'esgroup: %s\n' "$*" >&2; }

# The state of the files that decide what must be installed; the path, because scripts in .venv/bin contain it.
current_key() {
    local sum
    sum=$(cksum <"$root/pyproject.toml")
    printf '%s %s' "$sum" "$root"
}

# Sets `key` and `extras` from the stamp, both empty if there is none.
read_stamp() {
    key='' extras=''
    if [[ -f $stamp ]]; then
        { IFS= read -r key && IFS= read -r extras; } <"$stamp" || true
    fi
}

write_stamp() {
    printf '%s\n%s\n' "$1" "$2" >"$stamp.new" && mv -f "$stamp.new" "$stamp"
}

# The words of both arguments, each once.
union() {
    local word result=' '
    for word in $1 $2; do
        [[ $result == *" $word "* ]] || result+="$word "
    done
    result=${result% }
    printf '%s' "${result# }"
}

# True if .venv is complete, belongs to this pyproject.toml and has the extras in $1.
is_ready() {
    read_stamp
    [[ -x $venv/bin/python && $key == "$(current_key)" && $(union "$extras" "$1") == "$extras" ]]
}

find_python() {
    local name old='' bare=''
    for name in python3 python3.14 python3.13 python3.12 python3.11 python; do
        if ! "$name" -c '' 2>/dev/null; then
            continue
        elif ! "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            old+=" $name"
        elif ! "$name" -c 'import venv, ensurepip' 2>/dev/null; then
            bare+=" $name"
        else
            printf '%s' "$name"
            return
        fi
    done
    say "Python 3.11 or newer is needed, and none was found on PATH."
    [[ -z $old ]] || say "too old:$old"
    [[ -z $bare ]] || say "without the modules venv and ensurepip (a package such as python3-venv brings them):$bare"
    return 1
}

# Runs a command quietly; if it fails, shows what it printed.
quietly() {
    local output status=0
    output=$("$@" 2>&1) || status=$?
    ((status == 0)) || printf '%s\n' "$output" >&2
    return "$status"
}

# Says in a line what is done now and how long that usually takes; `stages` is the number of all of them.
stage() {
    number=$((number + 1))
    say "$number of $stages: $1; usually $2"
}

# Copies the output of pip into a file and says what it means: large downloads, and when they are over.
follow_pip() {
    local line
    local download='^ *(Downloading|Using cached) (.*/)?([A-Za-z0-9_.]+)-[0-9].*\(([0-9]{2,}(\.[0-9]+)? MB)\)'
    while IFS= read -r line; do
        printf '%s\n' "$line"
        if [[ $line =~ $download ]]; then
            say "   ${BASH_REMATCH[3]}, ${BASH_REMATCH[4]}"
        elif [[ $line == 'Installing collected packages'* ]]; then
            stage 'installing them' '10 to 40 s'
        fi
    done >"$1"
}

make_venv() {
    local python
    python=$(find_python) || return
    # the stamp first and the rest of an old environment after it: whatever interrupts us, .venv is known to be ours
    mkdir -p "$venv" && write_stamp unfinished "$1" || return
    find "$venv/" -mindepth 1 -maxdepth 1 ! -name .stamp -exec rm -rf {} + || return
    stage "making an environment with $("$python" --version 2>&1)" '5 to 20 s'
    quietly "$python" -m venv "$venv" || { say "could not make $venv"; return 1; }
}

install() {
    local log=$venv/.pip.log status
    stage "fetching the packages that it needs${1:+, with those for: $1}" '10 to 60 s, by the network'
    (
        cd "$root" && exec .venv/bin/python -m pip install --progress-bar off --disable-pip-version-check --no-input \
            --no-user --editable ".${1:+[${1// /,}]}"
    ) 2>&1 | follow_pip "$log"
    status=${PIPESTATUS[0]}
    if ((status != 0)); then
        cat "$log" >&2
        say "could not install the package into $venv"
        return "$status"
    fi
    # with PYTHONDONTWRITEBYTECODE, as in many containers, every call would compile all modules anew
    (cd "$root" && quietly .venv/bin/python -m compileall -q esgroup problems/esgroup_problems) || true
}

set_up() {
    local goal wanted number=0 stages=2 begin=$SECONDS
    goal=$(current_key)
    wanted=$(union "$extras" "$1") # `extras` from is_ready: what one script installed, the other keeps
    if [[ -e $venv && ! -f $stamp ]] && ! rmdir "$venv" 2>/dev/null; then # not made here: add to it, remove nothing
        "$venv/bin/python" -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
            { say "$venv is not an environment of Python 3.11 or newer with pip; please move it away"; return 1; }
        say "installing into the .venv that is there, once"
    elif [[ $key == *" $root" && -x $venv/bin/python ]]; then
        say "updating .venv, once"
        write_stamp unfinished "$wanted"
    else
        stages=3
        say "setting up $venv, once"
        make_venv "$wanted" || return
    fi
    if ! install "$wanted"; then
        [[ $key != *" $root" ]] || write_stamp "$key" "$extras" # pip failed and left all as it was
        return 1
    fi
    write_stamp "$goal" "$wanted"
    say "done in $((SECONDS - begin)) s; the next call finds all this in place"
}

# Only one set-up at a time, where there is flock. The lock is on this file: it needs none of its own.
lock() {
    command -v flock >/dev/null || return 0
    exec 9<"$root/scripts/_setup.sh"
    flock -n 9 2>/dev/null || { say "waiting for another set-up of .venv…"; flock 9 || true; }
}

# ensure_venv EXTRAS: afterwards .venv has the package and at least these extras (words, separated by spaces), and those
# that ESGROUP_EXTRAS names: what a later script needs is fetched with the rest.
ensure_venv() {
    local asked
    asked=$(union "$1" "${ESGROUP_EXTRAS:-}")
    is_ready "$asked" && return
    lock
    trap 'exit 130' INT # also when pip makes an ordinary failure of Ctrl-C: the stamp stays "unfinished"
    is_ready "$asked" || set_up "$asked" || exit 1
    trap - INT
    exec 9<&-
}
