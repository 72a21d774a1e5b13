"""Copies of a store: backups and branches that share what is full with it.

Called by ``seglog backup`` and ``seglog branch``.
Truth: the copy is marked as crashed, so that whoever opens it recovers it from its log.
"""

from __future__ import annotations

from seglog.doctor.copies.backup import Copied, make_backup
from seglog.doctor.copies.branch import create_branch, drop_branch, list_branches
from seglog.doctor.copies.branch_diff import BranchDiff, diff_branch
from seglog.doctor.copies.branch_names import branch_names, branch_path

__all__ = [
    "BranchDiff",
    "Copied",
    "branch_names",
    "branch_path",
    "create_branch",
    "diff_branch",
    "drop_branch",
    "list_branches",
    "make_backup",
]
