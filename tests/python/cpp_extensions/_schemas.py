"""The types of arguments and results of PyTorch's operators, by which extensions for the stable ABI
lay out the values of a call.

    python _schemas.py OUT.json.gz     # on PyTorch; tests/data/stable_abi/schemas.json.gz
"""

# SPDX-License-Identifier: Apache-2.0

import gzip
import json
import re
import sys


def types_of(schema):
    """ "Tensor,int[]->Tensor" for the schema of an operator: no names, aliases, defaults or sizes
    of lists."""
    arguments, _, results = schema.partition("(")[2].rpartition(" -> ")
    if results.startswith("(") and not re.match(r"\([a-z]!?\)", results):
        results = results[1:-1]
    found = []
    for part in (arguments[:-1], results):
        part = re.sub(r"\([a-z](!)?( -> [*|a-z]+)?(\|[a-z])*\)", "", part)
        part = re.sub(r"=(\[[^\]]*\]|\"[^\"]*\")", "", part)
        items = [item.strip() for item in part.split(",")]
        words = [re.split("[= ]", item)[0] for item in items if item not in ("*", "")]
        found.append(re.sub(r"\[\d+\]", "[]", ",".join(words).replace("SymInt", "int")))
    return "->".join(found)


def main(out):
    import torch

    schemas = [str(s) for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::")]
    table = {s.partition("(")[0].removeprefix("aten::"): types_of(s) for s in schemas}
    with gzip.GzipFile(out, "wb", mtime=0) as file:
        file.write(json.dumps(table, indent=0, sort_keys=True).encode())


if __name__ == "__main__":
    main(sys.argv[1])
