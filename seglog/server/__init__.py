"""The server: a broker behind one port or several, for the clients of RocketMQ; their name server as well.

``listening`` has the ports before there is a broker, whose routes name one. ``async_server`` serves it in an
event loop that exists, ``server`` in one of its own; the same broker may be used in process beside that.
``served_connection`` is one client: what it asks and is asked, and what ends it. ``outgoing`` writes;
``long_bodies`` reads what would keep the loop from other clients.

Called by the command line, and by applications that have a broker.
Truth: none; a connection that ends leaves nothing behind.
"""
