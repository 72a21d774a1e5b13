"""Recovery: writes the result of a survey to the files of a store, before the store serves anything.

Holds the steps of an opening for writing: tail, holes, queues, compaction logs and key index; and the
recovery points that let the next opening begin its walk near the end of the log. Each step applies the plan
of a survey; no step decides about damage itself.

Called by ``opening``, by a repair on its draft, and by the writer for recovery points.
Truth: the survey's walk over the log. A step copies bytes to the attic before it overwrites them.
"""

from seglog.storage.recovery.index_opening import indexes_tags as indexes_tags
from seglog.storage.recovery.index_opening import open_key_index as open_key_index
from seglog.storage.recovery.store_recovery import recover as recover
