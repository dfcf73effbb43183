"""Reading what users bring: the only place where texts, files, arrays and tables become exact, aligned numbers."""
