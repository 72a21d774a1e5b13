"""Files: the calls that touch a disk, all of them below one open folder.

Holds the seam :class:`~seglog.storage.files.files.Files`, which tests replace by files that crash or fail;
the safe resolution of names below a store; the store lock; hard links; and the translation of errors of the
operating system.

Called by every room that reads or writes a store. No other room opens a file of a store.
Truth: a name that a store holds is never resolved outside it.
"""

from seglog.storage.files.copies import copy_file as copy_file
from seglog.storage.files.copies import copy_tree as copy_tree
from seglog.storage.files.copies import link_or_copy as link_or_copy
from seglog.storage.files.copies import remove_tree as remove_tree
from seglog.storage.files.direct_reader import DirectReader as DirectReader
from seglog.storage.files.direct_writer import DirectWriter as DirectWriter
from seglog.storage.files.file_kinds import FILE as FILE
from seglog.storage.files.file_kinds import FOLDER as FOLDER
from seglog.storage.files.file_kinds import LINK as LINK
from seglog.storage.files.file_kinds import NAMES_OF_A_STORE as NAMES_OF_A_STORE
from seglog.storage.files.file_kinds import PACK_NAME as PACK_NAME
from seglog.storage.files.file_kinds import UNDO_FOLDER as UNDO_FOLDER
from seglog.storage.files.file_kinds import kind_error as kind_error
from seglog.storage.files.file_kinds import kind_of as kind_of
from seglog.storage.files.file_kinds import wanted_kind as wanted_kind
from seglog.storage.files.files import DiskUsage as DiskUsage
from seglog.storage.files.files import Entry as Entry
from seglog.storage.files.files import Files as Files
from seglog.storage.files.files import HeldLock as HeldLock
from seglog.storage.files.files import OpenFile as OpenFile
from seglog.storage.files.files import RealFiles as RealFiles
from seglog.storage.files.files import RestoringFiles as RestoringFiles
from seglog.storage.files.files import Stamp as Stamp
from seglog.storage.files.files import StampingFiles as StampingFiles
from seglog.storage.files.files import SwappingFiles as SwappingFiles
from seglog.storage.files.files import lock_held as lock_held
from seglog.storage.files.files import read_all as read_all
from seglog.storage.files.files import read_part as read_part
from seglog.storage.files.files import read_start as read_start
from seglog.storage.files.files import read_whole as read_whole
from seglog.storage.files.folder_use import FolderUse as FolderUse
from seglog.storage.files.os_errors import explain_os_error as explain_os_error
from seglog.storage.files.os_errors import explained as explained
from seglog.storage.files.output_path import check_outside as check_outside
from seglog.storage.files.output_path import check_writable as check_writable
from seglog.storage.files.output_path import new_file_outside as new_file_outside
from seglog.storage.files.output_path import open_outside as open_outside
from seglog.storage.files.real_file import RealFile as RealFile
from seglog.storage.files.rewrite import resize as resize
from seglog.storage.files.rewrite import rewrite_record as rewrite_record
from seglog.storage.files.rewrite import write_over as write_over
from seglog.storage.files.store_names import parts_of as parts_of
from seglog.storage.files.store_names import untrusted as untrusted
from seglog.storage.files.store_root import StoreRoot as StoreRoot
