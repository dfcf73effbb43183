"""Trade-offs between privacy and error."""
