"""A package of another project that adds one thing of every kind to the workbench."""
