"""Solve linear programs over laws under convex privacy bounds: tangents, interior-point method."""
