"""Settings: the names and options of a broker.

Called by every other room of the broker.
Truth: RocketMQ's defaults unless the caller gives others.
"""

from seglog.broker.settings.config import DEFAULT_ADDRESS as DEFAULT_ADDRESS
from seglog.broker.settings.config import BrokerConfig as BrokerConfig
from seglog.broker.settings.config import GuardPolicy as GuardPolicy
from seglog.broker.settings.live_config import Lent as Lent
from seglog.broker.settings.releases import RELEASES as RELEASES
from seglog.broker.settings.startup import Said as Said
from seglog.broker.settings.startup import Startup as Startup
from seglog.broker.settings.startup import read_startup as read_startup
from seglog.broker.settings.startup import said_in as said_in
