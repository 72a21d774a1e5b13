"""The command ``seglog``: one file per command, the only importer of click and rich.

``main`` knows each command by name and room, and loads it when it is called. Commands show; they decide
nothing.

Truth: the rooms below; every error ends in ``main`` with the exit code of its class.
"""
