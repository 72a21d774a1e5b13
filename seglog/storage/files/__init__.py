"""Files: the calls that touch a disk, all of them below one open folder.

Holds the seam :class:`~seglog.storage.files.files.Files`, which tests replace by files that crash or fail;
the safe resolution of names below a store; the store lock; hard links; and what errors of the operating
system mean.

Called by every room that reads or writes a store. No other room opens a file of a store.
Truth: a name that a store holds is never resolved outside it.
"""

from __future__ import annotations

from seglog.storage.files.copies import copy_file, copy_tree, link_or_copy, remove_tree
from seglog.storage.files.file_kinds import (
    FILE,
    FOLDER,
    LINK,
    PACK_NAME,
    UNDO_FOLDER,
    kind_error,
    kind_of,
    wanted_kind,
)
from seglog.storage.files.files import (
    DiskUsage,
    Entry,
    Files,
    HeldLock,
    OpenFile,
    RestoringFiles,
    Stamp,
    StampingFiles,
    SwappingFiles,
    read_all,
    read_start,
    read_whole,
)
from seglog.storage.files.os_errors import explain_os_error, explained
from seglog.storage.files.output_path import check_outside, new_file_outside, open_outside
from seglog.storage.files.real_file import RealFile
from seglog.storage.files.rewrite import resize, rewrite_record, write_over
from seglog.storage.files.store_names import parts_of, untrusted
from seglog.storage.files.store_root import StoreRoot

__all__ = [
    "FILE",
    "FOLDER",
    "LINK",
    "PACK_NAME",
    "UNDO_FOLDER",
    "DiskUsage",
    "Entry",
    "Files",
    "HeldLock",
    "OpenFile",
    "RealFile",
    "RestoringFiles",
    "Stamp",
    "StampingFiles",
    "StoreRoot",
    "SwappingFiles",
    "check_outside",
    "copy_file",
    "copy_tree",
    "explain_os_error",
    "explained",
    "kind_error",
    "kind_of",
    "link_or_copy",
    "new_file_outside",
    "open_outside",
    "parts_of",
    "read_all",
    "read_start",
    "read_whole",
    "remove_tree",
    "resize",
    "rewrite_record",
    "untrusted",
    "wanted_kind",
    "write_over",
]
