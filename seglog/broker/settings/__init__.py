"""Settings: what a broker is called, how it is set, and who is asking.

Called by every other room of the broker.
Truth: RocketMQ's defaults unless the caller says otherwise.
"""

from seglog.broker.settings.config import BrokerConfig as BrokerConfig
from seglog.broker.settings.config import GuardPolicy as GuardPolicy
from seglog.broker.settings.peer import Peer as Peer
