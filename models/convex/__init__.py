"""Models for smooth notions of privacy: tangents and the interior method."""
