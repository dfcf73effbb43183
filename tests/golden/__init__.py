"""What commands answer, as numbers: recorded once, compared ever after (see `values`)."""
