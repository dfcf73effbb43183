"""State and solve the optimization models, one folder for each family, like the papers' equations.

The language is CVXPY's. `workbench.models.oracles` has the closed forms and combinatorial
algorithms that judge a solver's answer.
"""
