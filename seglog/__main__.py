"""``seglog`` and ``python -m seglog``: the command line."""

from __future__ import annotations

import signal


def main() -> None:
    """Runs the command line of this process."""
    # Python would answer a Ctrl-C within an import with a traceback; so it ends the process, as it does
    # any other, until the commands are there that say what they ended with.
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_usual:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from seglog.cli.main import main as run

    if is_usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
