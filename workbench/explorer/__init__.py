"""Designs and their trade-offs in a browser: from a server on this machine, or as one file.

    given         texts of options, as a page or a command line gives them ──▶ exact values,
                  a command, a Python call
    page_request  one request of a page, and the options that it can have
    figures       a design's law, its privacy, its rows ──▶ data that the page draws
    formula_map   the map of the formulas of a question
    views         a design as plain data
    alone         tasks without a design
    tasks         what a page can request; runs in a worker process
    processes     workers that can be stopped at any moment
    server        HTTP on loopback, with a token
    page          the page as one file, with its data for reading without a server
    notebook      `workbench.explore`: the page in a notebook

No module knows the name of a family. Everything is read from the registry, from the options, and
from the attributes that every `Design` has.
"""
