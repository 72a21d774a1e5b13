"""The key index: from the hash of a key to the records that have it.

Holds the index of an open store, which follows the log in batches, lookups in index files, queries by key,
and the facts that queries keep about keys whose hashes collide.

Called by the writer (which drains the index before a query), readers, repairs and checks.
Truth: the keys of the record itself. An entry is only a candidate, which is compared with the record.
"""

from seglog.storage.index.attic_index import as_found as as_found
from seglog.storage.index.attic_index import removed_files as removed_files
from seglog.storage.index.index_cover import uncovered as uncovered
from seglog.storage.index.index_cover import usable as usable
from seglog.storage.index.index_lookup import iter_places as iter_places
from seglog.storage.index.index_times import is_of_log as is_of_log
from seglog.storage.index.key_index import next_index_name as next_index_name
