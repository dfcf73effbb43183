"""Write workbench/comparison/optima.json, the optima that `workbench programs list` tells: from a folder that
`workbench programs export` made.

    workbench programs export library && python tools/optima.py library
"""

import json
import sys
from pathlib import Path

TOLD = ("sha256", "value", "bound", "proof")
TARGET = Path(__file__).parents[1] / "workbench" / "comparison" / "optima.json"


def main(folder: str) -> None:
    """Write the table from the records of a folder."""
    records = [json.loads(path.read_text("utf-8")) for path in sorted(Path(folder).glob("*.json"))]
    rows = [
        f'"{record["name"]}": {json.dumps({name: record[name] for name in TOLD})}'
        for record in records
    ]
    TARGET.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
