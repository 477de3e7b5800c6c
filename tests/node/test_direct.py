#!/usr/bin/env python3
"""What people do with pods, on a host whose kubelet dials containerd itself:
the base line for every other way, and for pods on cards."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import everything  # noqa: E402

everything.main("direct")
