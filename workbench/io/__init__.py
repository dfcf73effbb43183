"""Files, CSV columns, parameter grids and figures."""
