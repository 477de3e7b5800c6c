#!/usr/bin/env python3
"""What people do with pods, where biga-cri stands before the host and its
cards: on the host as without it, and on cards."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import everything  # noqa: E402
from place import OnCard, Place  # noqa: E402

everything.main("router", (Place, OnCard), n_cards=2)
