"""Any finite channel: inputs, outputs, neighbours, prior and loss as they are."""
