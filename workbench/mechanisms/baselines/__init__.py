"""Published mechanisms with which designs are compared."""
