"""Write workbench/comparison/optima.json from a folder that `workbench programs export` made.

    workbench programs export library && python tools/optima.py library

`workbench programs list` prints the optima of this file.
"""

import json
import sys
from pathlib import Path

FIELDS = ("sha256", "value", "bound", "proof")
TARGET = Path(__file__).parents[1] / "workbench" / "comparison" / "optima.json"


def write_optima(folder: str) -> None:
    """Write the table of optima.

    Args:
        folder: folder of exported programs. Each program has a record NAME.json there.
    """
    records = [json.loads(path.read_text("utf-8")) for path in sorted(Path(folder).glob("*.json"))]
    rows = []
    for record in records:
        values = {name: record[name] for name in FIELDS}
        rows.append(f'"{record["name"]}": {json.dumps(values)}')
    TARGET.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")


if __name__ == "__main__":
    write_optima(*sys.argv[1:])
