"""The settings of a run and what came of them, as TensorBoard's HPARAMS tab wants them: three
summaries without values, whose metadata say which settings there are, what they were, and that the
run is over.

The numbers of the fields are those of the plugin's api.proto and plugin_data.proto.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Mapping, Optional

from . import _summaries, _wire
from ._arrays import to_number

_TEXT, _NUMBER = 1, 3  # of DataType
_SUCCESS = 1


def _value(setting: Any) -> tuple[int, bytes]:
    """The type of a setting and the setting, as google.protobuf.Value. True and False are
    numbers."""
    if isinstance(setting, str):
        return _TEXT, _wire.text(3, setting)
    return _NUMBER, _wire.double(2, to_number(setting))


def _plugin(kind: int, content: bytes) -> bytes:
    return _summaries.plugin("hparams", _wire.data(kind, content))


def summaries(
    settings: Mapping[str, Any],
    metrics: Mapping[str, Any],
    domains: Optional[Mapping[str, list]] = None,
) -> list[bytes]:
    """The three summaries. `domains`: for settings the values that they may have."""
    for name, given in (("hparam_dict", settings), ("metric_dict", metrics)):
        if not isinstance(given, Mapping):
            raise TypeError(f"{name} should be a dictionary, nothing logged.")
    infos, chosen = b"", b""
    for name, setting in settings.items():
        if setting is None:
            continue
        kind, held = _value(setting)
        domain = b""
        if domains and name in domains:
            allowed = [_value(item) for item in domains[name]]
            if any(other != kind for other, _ in allowed):
                raise TypeError(
                    f"add_hparams: expected values of one type for {name!r}, got {domains[name]!r}"
                )
            domain = _wire.data(5, b"".join(_wire.data(1, item) for _, item in allowed))
        infos += _wire.data(4, _wire.text(1, name) + _wire.integer(4, kind) + domain)
        chosen += _wire.entry(1, name, held)
    for name in metrics:
        infos += _wire.data(5, _wire.data(1, _wire.text(2, name)))
    return [
        _summaries.value("_hparams_/experiment", _plugin(2, infos)),
        _summaries.value("_hparams_/session_start_info", _plugin(3, chosen)),
        _summaries.value("_hparams_/session_end_info", _plugin(4, _wire.integer(1, _SUCCESS))),
    ]
