#!/usr/bin/env python3
"""The kubelets of a lab's nodes: kubelet.py DIR, a cluster's folder."""
import sys
import threading

from cluster import Cluster
from fleet import Kubelet

if len(sys.argv) != 2:
    sys.exit(__doc__)
Kubelet(Cluster.attach(sys.argv[1]).api).start()
threading.Event().wait()
