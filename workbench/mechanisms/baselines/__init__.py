"""Published mechanisms that designs are compared with."""
