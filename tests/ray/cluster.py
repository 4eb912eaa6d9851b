"""Run a Ray cluster of two nodes on this machine until stdin ends; prints its address.

`cluster.py FOLDER HIDDEN` keeps its files in a folder; its second node does not see what lies in
HIDDEN, when that is named.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

# A busy machine needs longer for these than Ray waits by itself.
os.environ.update(
    RAY_agent_register_timeout_ms="1800000",
    RAY_raylet_start_wait_time_s="1800",
    RAY_gcs_server_request_timeout_seconds="1800",
    RAY_USAGE_STATS_ENABLED="0",
)
_NEW_MOUNTS, _RECURSIVE, _PRIVATE = 0x20000, 0x4000, 0x40000
_NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}


def hide(folder: str) -> None:
    """Let what this process starts from now on see an empty folder in its place."""
    libc = ctypes.CDLL(None, use_errno=True)
    for failed in (
        libc.unshare(_NEW_MOUNTS),
        libc.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None),
        libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, None),
    ):
        if failed:
            raise OSError(ctypes.get_errno(), "cannot hide", folder)


def main() -> None:
    """Start the nodes, say where, and stop them."""
    from ray.cluster_utils import Cluster

    folder, *hidden = sys.argv[1:]
    # Ray notes the address of its last cluster in this folder, and does not make it.
    os.environ["RAY_TMPDIR"] = folder
    Path(folder, "ray").mkdir()
    cluster = Cluster(
        initialize_head=True,
        head_node_args=_NODE | {"include_dashboard": False, "temp_dir": folder},
    )
    for name in hidden:
        hide(name)
    cluster.add_node(**_NODE)
    print(cluster.address, flush=True)
    sys.stdin.read()
    cluster.shutdown()


main()
