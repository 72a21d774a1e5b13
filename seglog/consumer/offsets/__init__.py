"""Where a group goes on, and where it begins: its offsets at brokers, or of one client in a local file.

Called by the consumer and by its pulls.
"""

from seglog.consumer.offsets.local_offset_files import ClientOffsets as ClientOffsets
from seglog.consumer.offsets.local_offset_files import read_local_offsets as read_local_offsets
from seglog.consumer.offsets.local_offset_store import MOST_BYTES as MOST_BYTES
