"""One module per paper: its tables and figures, recomputed and shown beside what was printed."""
