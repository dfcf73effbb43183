"""Files, JSON records, figures, notebook output, plug-ins and worker processes."""
