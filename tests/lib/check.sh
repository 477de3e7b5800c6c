# Sourced by scripts of tests/e2e that try many commands: a folder $work, a
# TAP-like line for each check, and $bad, which is 1 when one failed.
# shellcheck shell=bash disable=SC2034

# shellcheck source=tests/lib/hangs.sh
. "$(dirname "${BASH_SOURCE[0]}")/hangs.sh"
work=$(mktemp -d)
bad=0
check() { # what, exit status wanted, pattern in the output, command…
    local what=$1 want=$2 pattern=$3 status
    shift 3
    # a function of the script's cannot be given to timeout
    [ "$(type -t "$1")" = file ] && set -- timeout --foreground "$HANGS" "$@"
    "$@" >"$work/out" 2>&1
    status=$?
    if [ "$status" = "$want" ] && grep -Eq -- "$pattern" "$work/out"; then
        echo "ok - $what"
    else
        echo "not ok - $what: exit $status (want $want), wanted /$pattern/ in:"
        sed 's/^/# /' "$work/out" | head -20
        bad=1
    fi
}
