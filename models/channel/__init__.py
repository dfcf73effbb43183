"""Models of channels on finite inputs: programs, blocks and their interior method."""
