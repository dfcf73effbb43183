"""Optimization models: one folder for each family of models, written like the papers' equations in CVXPY's language.

`workbench.models.oracles` holds the closed forms and combinatorial algorithms that judge a solver's answer.
"""
