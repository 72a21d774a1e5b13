"""Tables of a broker that is not running: config files as a check reads them, and the offsets of groups.

Called by checks, repairs and everything about groups.
Truth: the file, or its backup if the file cannot be read.
"""

from seglog.doctor.tables.config_tables import OFFSETS_FILE as OFFSETS_FILE
from seglog.doctor.tables.config_tables import ConfigTables as ConfigTables
from seglog.doctor.tables.config_tables import load_tables as load_tables
from seglog.doctor.tables.lost_tables import demand_offsets as demand_offsets
from seglog.doctor.tables.offset_table import GroupOffset as GroupOffset
from seglog.doctor.tables.offset_table import OffsetTable as OffsetTable
