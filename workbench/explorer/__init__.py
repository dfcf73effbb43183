"""Show designs and their trade-offs in a browser: from a server on this machine, or as one file.

    given         converts texts of options, as a page or a command line gives them, to exact
                  values, a command, or a Python call
    page_request  one request of a page, and the options that it can have
    figures       converts a design's law, its privacy and its rows to data that the page draws
    formula_map   the map of the formulas of a question
    views         converts a design to plain data
    alone         recommendations and frontier rows, which need no design
    tasks         the tasks that a page can request; they run in a worker process
    processes     worker processes that can be stopped at any moment
    server        HTTP on loopback, with a token
    page          the page as one file, with its data for reading without a server
    notebook      `workbench.explore`: the page in a notebook

No module knows the name of a family. Everything is read from the registry, from the options, and
from the attributes that every `Design` has.
"""
