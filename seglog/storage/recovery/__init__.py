"""Recovery: brings a store that was surveyed into the state that it will serve, before it serves it.

Holds the steps that an opening for writing applies: tail, holes, queues, compaction logs and key index; and
the recovery points that let the next opening begin near the end of the log. Each step applies the plan of a
survey and decides nothing about damage itself.

Called by ``opening``, by a repair on its draft, and by the writer for recovery points.
Truth: the survey's walk over the log. What a step writes over goes to the attic first.
"""

from seglog.storage.recovery.index_opening import indexes_tags as indexes_tags
from seglog.storage.recovery.index_opening import open_key_index as open_key_index
from seglog.storage.recovery.store_recovery import recover as recover
