"""Settings: what a broker is called, and how it is set.

Called by every other room of the broker.
Truth: RocketMQ's defaults unless the caller says otherwise.
"""

from seglog.broker.settings.config import BrokerConfig as BrokerConfig
from seglog.broker.settings.config import GuardPolicy as GuardPolicy
from seglog.broker.settings.live_config import Lent as Lent
