"""The offsets of a group at brokers or in a client's local file, and the offset where a group begins.

Called by the consumer and by its pulls.
"""

from seglog.consumer.offsets.local_offset_files import ClientOffsets as ClientOffsets
from seglog.consumer.offsets.local_offset_files import read_local_offsets as read_local_offsets
from seglog.consumer.offsets.local_offset_store import MOST_BYTES as MOST_BYTES
