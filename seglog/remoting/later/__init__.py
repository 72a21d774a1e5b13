"""Results that come later, and how threads and event loops hear of them.

``deferred`` is the one type of all of them, ``asked`` the table of those that the other end of a connection
gives; an ``inbox`` wakes its thread once for all that came, and
``loop_inbox`` has one for each event loop.

Called by brokers, clients and servers.
"""

from seglog.remoting.later.asked import AskTable as AskTable
from seglog.remoting.later.deferred import CancelledError as CancelledError
from seglog.remoting.later.deferred import Deferred as Deferred
