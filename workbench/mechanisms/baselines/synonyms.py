"""Other names of published mechanisms, in lower case, and the names under which they are listed."""

SYNONYMS = {"discrete laplace": "geometric", "two-sided geometric": "geometric"}
