"""Links, which carry a client's requests to brokers and name servers, in process or over connections.

``local_link`` hands requests to a broker in this process; ``remote_link`` has a connection for each address.
Both have the same behaviour. Only the second needs asyncio.

Called by producers, consumers and their clients.
Truth: memory only.
"""

from seglog.client.links.asking import Ask as Ask
from seglog.client.links.asking import within as within
from seglog.client.links.local_link import LocalLink as LocalLink
from seglog.client.links.troubles import Troubles as Troubles
from seglog.client.links.troubles import level_of as level_of
