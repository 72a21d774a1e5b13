"""Settings: what a broker is called, how it is set, and who is asking.

Called by every other room of the broker.
Truth: RocketMQ's defaults unless the caller says otherwise.
"""

from __future__ import annotations

from seglog.broker.settings.config import BrokerConfig, GuardPolicy
from seglog.broker.settings.peer import Peer

__all__ = [
    "BrokerConfig",
    "GuardPolicy",
    "Peer",
]
