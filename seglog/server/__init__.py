"""The server: a broker behind one port or several, for RocketMQ clients, and also their name server.

``listening`` binds the ports before the broker is opened, whose routes name one. ``async_server`` serves a
broker in a running event loop, ``server`` in a loop of its own; the same broker may be used in process too.
``served_connection`` is the connection of one client: its requests, the broker's requests to it, and its end.
``outgoing`` writes; ``long_bodies`` parses bodies that would block the loop.

Called by the command line, and by applications with a broker.
Truth: none; a connection that ends leaves nothing behind.
"""
