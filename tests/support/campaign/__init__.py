"""The campaign: everything at the usual size, in pieces, so that a run that was stopped continues."""
