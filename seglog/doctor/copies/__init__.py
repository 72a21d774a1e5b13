"""Copies of a store: backups, and branches that share its full files.

Called by ``seglog backup`` and ``seglog branch``.
Truth: the copy is marked as crashed, so the next opening recovers it from its log.
"""

from seglog.doctor.copies.backup import Copied as Copied
from seglog.doctor.copies.backup import make_backup as make_backup
from seglog.doctor.copies.branch import create_branch as create_branch
from seglog.doctor.copies.branch import drop_branch as drop_branch
from seglog.doctor.copies.branch import existing_branch as existing_branch
from seglog.doctor.copies.branch import list_branches as list_branches
from seglog.doctor.copies.branch_diff import BranchDiff as BranchDiff
from seglog.doctor.copies.branch_diff import OffsetChange as OffsetChange
from seglog.doctor.copies.branch_diff import QueueChange as QueueChange
from seglog.doctor.copies.branch_diff import diff_branch as diff_branch
from seglog.doctor.copies.branch_places import branch_names as branch_names
from seglog.doctor.copies.branch_places import branch_path as branch_path
