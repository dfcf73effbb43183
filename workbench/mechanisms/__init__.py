"""What comes out of a design, and what it is compared with."""
