"""A package of somebody else's that adds one thing of every kind to the workbench."""
