"""``python -m seglog``: the command line."""

from seglog.cli.main import main

main()
