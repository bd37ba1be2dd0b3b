"""An extension lays out the values of a call by PyTorch's schema of the operator, and is not asked
how many there are. So an operator of PyTorch's name has its types of arguments and results here."""

# SPDX-License-Identifier: Apache-2.0

import gzip
import json
import os
from pathlib import Path

from _schemas import types_of

from treadle_testing import catalogue

ROOT = Path(os.environ.get("TREADLE_SOURCE", Path(__file__).parents[3]))
PYTORCHS = ROOT / "tests" / "data" / "stable_abi" / "schemas.json.gz"


def reads_what_there_is(here, there):
    """Whether a call by the schema `there` can be read by the schema `here`: the types are the
    same, or optional values at the end are not read."""
    mine, _, my_results = here.partition("->")
    theirs, _, their_results = there.partition("->")
    rest = theirs.removeprefix(mine)
    unread = rest.startswith(",") and all(t.endswith("?") for t in rest[1:].split(","))
    return my_results == their_results and (mine == theirs or unread)


def test_calls_of_extensions_are_read_as_they_were_written():
    with gzip.open(PYTORCHS) as file:
        pytorchs = json.load(file)
    wrong, compared = {}, 0
    for op in catalogue.operators():
        for form in op.json["forms"]:
            there = pytorchs.get(form["id"])
            compared += there is not None
            here = types_of(form["schema"])
            if there is not None and not reads_what_there_is(here, there):
                wrong[form["id"]] = f"{here}, PyTorch's is {there}"
    assert not wrong and compared > 800
    assert not reads_what_there_is("Tensor,int,bool->Tensor", "Tensor,int->Tensor")
    assert not reads_what_there_is("Tensor->Tensor", "Tensor,int->Tensor")
    assert not reads_what_there_is("Tensor,int?->Tensor", "Tensor,int->Tensor")
    assert reads_what_there_is("Tensor->Tensor", "Tensor,int?->Tensor")
