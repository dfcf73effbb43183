"""What the workbench promised before its modules moved: recorded once, compared ever after (see `record`)."""
