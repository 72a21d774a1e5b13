"""Hypothesis profiles: dev is quick, ci repeats itself exactly, nightly searches long.

HYPOTHESIS_PROFILE chooses one; without it, ci where the variable CI is set and dev elsewhere.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Examples share the disk with other work here; a slow one is no finding, so no profile has a deadline.
settings.register_profile("dev", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=200, derandomize=True, print_blob=True)
settings.register_profile(
    "nightly", deadline=None, max_examples=5000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))
