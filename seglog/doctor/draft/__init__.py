"""Drafts: a store's files that can be changed at will while the real ones stay as they are.

Changed pages are kept in memory and temporary files; ``changes`` says which bytes differ.

Called by repairs, and by commands that show first what they would change.
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
