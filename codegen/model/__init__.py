"""The operator model: what schemac wrote to opmodel.json, as frozen dataclasses.

    model = load("opmodel.json")
    add = model.by_full_name["add.Tensor"]
    add.form(FormKind.OUT).schema

`schema` has the signatures, `expr` the expressions, `entry` what an entry says; `load` reads them.
"""

# SPDX-License-Identifier: Apache-2.0
