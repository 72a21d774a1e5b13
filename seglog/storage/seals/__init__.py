"""Seals: checksums of full segments, block by block, and the meaning of differences from them.

Holds the background thread that writes seals, their files under ``seglog/seals/``, the check of segments
against seals, and the guard that checks a block when it is first read.

Called by surveys, openings, the writer and ``seglog verify``.
Truth: the segment's bytes when they were sealed; a record that proves itself is believed over a stale seal.
"""

from seglog.storage.seals.seal import make_seal as make_seal
from seglog.storage.seals.seal_check import BlockCheck as BlockCheck
from seglog.storage.seals.seal_check import Concerned as Concerned
from seglog.storage.seals.seal_check import check_blocks as check_blocks
from seglog.storage.seals.seal_check import judge as judge
from seglog.storage.seals.seal_check import segment_path as segment_path
from seglog.storage.seals.seal_files import SEALS as SEALS
from seglog.storage.seals.seal_files import list_seals as list_seals
from seglog.storage.seals.seal_files import read_seal as read_seal
from seglog.storage.seals.seal_files import remove_seal as remove_seal
from seglog.storage.seals.seal_files import retire_seals as retire_seals
from seglog.storage.seals.seal_files import seal_file as seal_file
from seglog.storage.seals.seal_files import write_seal as write_seal
