"""Questions: who may answer what, and who are neighbours."""
