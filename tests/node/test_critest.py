#!/usr/bin/env python3
"""The chosen specs of critest, which take a short while, at each target, all
targets at once.

    test_critest.py [TARGET…]
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import critest  # noqa: E402

critest.main(["--chosen", *sys.argv[1:]])
