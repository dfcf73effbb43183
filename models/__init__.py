"""What is optimised: one file per family of models, written like the papers' equations in CVXPY's language.

`models.oracles` holds the closed forms and combinatorial algorithms that judge a solver's answer.
"""

# Lets the workbench tell this package from a stranger's `models` folder on the same path.
__workbench_package__ = True
