"""Designs and their trade-offs in a browser: live on this machine, or as one self-contained file.

    given         option texts, as a page or a command line gives them ──▶ exact values, a command, a Python call
    figures       a design's law, its privacy, rows ──▶ data that the page draws
    tasks         what a page can ask for; runs in a worker process
    processes     workers that can be stopped at any moment
    server        HTTP on loopback, with a token
    page          the page as one file, with its data for reading without a server

Nothing here knows a family by name: all is read from the registry, the options and what every `Design` has.
"""
