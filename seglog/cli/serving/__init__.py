"""``seglog serve``: the life of a process that serves one store.

``serve`` is the command, ``options`` what it was told, ``life`` what the process does from its first line to
its last. ``readiness`` says that clients are served, ``time_lines`` reads lines that move virtual time, and
``telling`` says what happens, through an ``outlet`` each that never keeps anyone waiting. ``signals`` has the
process end at any moment of its life.

Called by the entry of the command line.
Truth: none; all that lasts is the store's.
"""
