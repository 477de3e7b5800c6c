#!/bin/bash
# The commands of README and the documents.  Needs python3 and git.
set -u
cd "$(dirname "$0")/../.." || exit 1
for tool in python3 git; do
    command -v $tool >/dev/null || { echo "there is no $tool"; exit 77; }
done
git ls-files README.md 2>/dev/null | grep -q . ||
    { echo "no checkout of git, which says what the documents are"; exit 77; }
exec python3 -B tests/e2e/docs.py
