"""Mapped files: rolling sequences of equally long files, each named by the offset of its first byte.

Holds one mapped file (append, slice, flush), a sequence of mapped files, and scratch memory that moves to
temporary files when it grows.

Called by log, queues and index.
Truth: the file system. Space is allocated before it is written, so a full disk raises an error and no signal.
"""

from seglog.storage.segments.mapped_file import MappedFile as MappedFile
from seglog.storage.segments.mapped_file import MapPool as MapPool
from seglog.storage.segments.scratch import Scratch as Scratch
from seglog.storage.segments.segments import STAGED_SUFFIX as STAGED_SUFFIX
