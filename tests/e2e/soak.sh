#!/bin/bash
# The verdict on a soak can fail: a bad history for each of its rules.
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
exec python3 -B tests/soak/test_verdict.py
