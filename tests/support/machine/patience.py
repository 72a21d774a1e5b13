"""How long tests wait for what an idle machine does in a known time: longer where others compete for it."""

from __future__ import annotations

import os


def patience_s(idle_s: float) -> float:
    """Returns a limit that only something that hangs passes.

    Args:
        idle_s: A limit that holds on an idle machine.
    """
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    return idle_s * max(2.0, 2 * load)
