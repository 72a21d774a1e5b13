"""``seglog serve``: the life of a process that serves one store.

``serve`` is the command, ``options`` holds its arguments, ``life`` runs the process from start to end.
``readiness`` reports that clients are served, ``time_lines`` reads lines that move virtual time, and
``telling`` prints events and the log, each through an ``outlet`` that never blocks its callers. ``signals``
lets the process end at any time.

Called by the entry point of the command line.
Truth: none; all lasting state is in the store.
"""
