"""Name the losses that published noise may minimise.

`recommend` names these, too. The module imports nothing, so that `recommend` starts fast.
"""

LOSSES = ("squared", "absolute")  # The first one is the default.
