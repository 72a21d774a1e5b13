"""Drafts: a copy-on-write view of a store's files, which can be changed while the real ones stay unchanged.

Changed pages are kept in memory and temporary files; ``changes`` lists the bytes that differ.

Called by repairs, and by commands that show their changes before they make them.
Truth: the real files below the draft.
"""

from seglog.doctor.draft.changes import CHANGED as CHANGED
from seglog.doctor.draft.changes import CREATED as CREATED
from seglog.doctor.draft.changes import MADE as MADE
from seglog.doctor.draft.changes import MOVED as MOVED
from seglog.doctor.draft.changes import REMOVED as REMOVED
from seglog.doctor.draft.changes import Change as Change
from seglog.doctor.draft.preview_files import PreviewFiles as PreviewFiles
from seglog.doctor.draft.preview_files import refuse_open as refuse_open
