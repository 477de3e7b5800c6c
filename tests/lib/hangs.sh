# Sourced by other scripts: seconds after which what is waited for will not
# come any more.  How long something takes is not judged by it.
# shellcheck shell=bash disable=SC2034
HANGS=300
