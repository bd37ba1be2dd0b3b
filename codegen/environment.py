"""The environment of the templates: the filters and tests that they may use, by name."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from pathlib import Path
from typing import Callable

import jinja2

from .bindings import stubs
from .cpp import code, expressions, names, signatures
from .gradients import layer
from .model.entry import Kind, Policy, Promotion
from .operators import contract, elements, facts, linked, lists, lookup

TEMPLATES = Path(__file__).resolve().parent / "templates"

FILTERS: dict[str, Callable[..., object]] = {
    "c_string": code.quoted,
    "cpp_name": names.cpp_name,
    "plain_name": names.plain_name,
    "element": expressions.element,
    # signatures
    "declaration": signatures.declaration,
    "kernel_types": signatures.kernel_types,
    "method_arguments": signatures.method_arguments,
    "method_declaration": signatures.method_declaration,
    "names_only": signatures.names_only,
    "out_names": signatures.out_names,
    "plain_names_only": signatures.plain_names_only,
    "required_parameters": signatures.required_parameters,
    "returns_of": signatures.returns_of,
    "types_only": signatures.types_only,
    "with_defaults": signatures.with_defaults,
    # how a kernel is found
    "inputs_of": lookup.inputs_of,
    "key_dtype": lookup.key_dtype,
    "key_names": lookup.key_names,
    "key_pointers": lookup.key_pointers,
    "returns_views": lookup.returns_views,
    "tensors": lookup.tensors,
    "tensors_and_lists": lookup.tensors_and_lists,
    "written_lists": lookup.written_lists,
    # the facts of an entry
    "check_texts": facts.check_texts,
    "dtype_rows": facts.dtype_rows,
    "expression_nodes": facts.expression_nodes,
    "moved_arguments": facts.moved_arguments,
    # the checks of a call
    "argument_lines": contract.argument_lines,
    "contract_lines": contract.contract_lines,
    "first_lines": contract.first_lines,
    "list_argument_lines": contract.list_argument_lines,
    "outside_row": contract.outside_row,
    # pointwise and reducing operators
    "block_types": elements.block_types,
    "divisors": elements.divisors,
    "element_names": elements.element_names,
    "expression_text": elements.expression_text,
    "multiplies": elements.multiplies,
    "numbers": elements.numbers,
    "promote_enumerator": elements.promote_enumerator,
    "promoting": elements.promoting,
    "reduce_dims": elements.reduce_dims,
    "reduce_option": elements.reduce_option,
    "row_cells": elements.row_cells,
    "scalars": elements.scalars,
    # functions written by hand
    "alias_headers": linked.alias_headers,
    "any_requires_grad": linked.any_requires_grad,
    "call_before_change": linked.call_before_change,
    "composes_in_place": linked.composes_in_place,
    "hand_written": linked.hand_written,
    "is_composed_in_place": linked.is_composed_in_place,
    "is_composite": linked.is_composite,
    "linked_call": linked.linked_call,
    "linked_kernel": linked.linked_kernel,
    "may_wait": linked.may_wait,
    "shape_call": linked.shape_call,
    "waiting_call": linked.waiting_call,
    # operators on lists
    "foreach_call": lists.foreach_call,
    "foreach_headers": lists.foreach_headers,
    "foreach_lists": lists.foreach_lists,
    "foreach_numbers": lists.foreach_numbers,
    "foreach_shared": lists.foreach_shared,
    "has_scalar_lists": lists.has_scalar_lists,
    # layers
    "seen": layer.seen,
    # stubs
    "named_results": stubs.named_results,
    "stub_bindings": stubs.stub_bindings,
    "stub_body": stubs.stub_body,
    "stub_parameters": stubs.stub_parameters,
}


def environment() -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters.update(FILTERS)
    env.tests["has_cpu_kernels"] = elements.has_cpu_kernels
    env.tests["has_element"] = elements.has_element
    env.tests["ignores_sign"] = elements.ignores_sign
    env.globals.update(Kind=Kind, Policy=Policy, Promotion=Promotion, Style=layer.Style)
    return env
