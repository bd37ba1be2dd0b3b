"""What a program asks of quantize_fx besides QConfigs.

Example:

    prepare_fx(model, mapping, inputs,
               PrepareCustomConfig().set_non_traceable_module_names(["decoder"]))
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, List

from treadle import _names

__all__ = ["ConvertCustomConfig", "FuseCustomConfig", "PrepareCustomConfig"]


class _CustomConfig:
    """Lists, by name; each method sets one and gives the settings back."""

    # The names that a dictionary may have for the lists.
    _in_dictionaries: Dict[str, str] = {"preserved_attributes": "preserved_attributes"}

    def __init__(self) -> None:
        for name in self._in_dictionaries:
            setattr(self, name, [])

    def set_preserved_attributes(self, attributes: List[str]) -> Any:
        """The names of attributes of the model that the graph keeps."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def from_dict(cls, settings: Dict[str, Any]) -> Any:
        """The settings of a dictionary; ValueError for a key that there is not."""
        made = cls()
        names = {key: name for name, key in cls._in_dictionaries.items()}
        for key, value in settings.items():
            if key not in names:
                raise ValueError(f"{cls.__name__}: expected keys in {sorted(names)}, got {key!r}")
            setattr(made, names[key], value)
        return made

    def to_dict(self) -> Dict[str, Any]:
        """The settings as a dictionary."""
        pairs = self._in_dictionaries.items()
        return {key: getattr(self, name) for name, key in pairs if getattr(self, name)}

    def __repr__(self) -> str:
        shown = ", ".join(f"{key!r}: {value!r}" for key, value in self.to_dict().items())
        return f"{type(self).__name__} ({{{shown}}})"


class FuseCustomConfig(_CustomConfig):
    """Settings of fuse_fx()."""


class ConvertCustomConfig(_CustomConfig):
    """Settings of convert_fx()."""


class PrepareCustomConfig(_CustomConfig):
    """Settings of prepare_fx() and prepare_qat_fx()."""

    _in_dictionaries = {
        "preserved_attributes": "preserved_attributes",
        "non_traceable_module_names": "non_traceable_module_name",
        "non_traceable_module_classes": "non_traceable_module_class",
        "input_quantized_indexes": "input_quantized_idxs",
        "output_quantized_indexes": "output_quantized_idxs",
    }

    def set_non_traceable_module_names(self, module_names: List[str]) -> PrepareCustomConfig:
        """The names of modules that are not looked into: they stay as they are."""
        self.non_traceable_module_names = module_names
        return self

    def set_non_traceable_module_classes(self, module_classes: List[type]) -> PrepareCustomConfig:
        """The classes of modules that are not looked into: they stay as they are."""
        self.non_traceable_module_classes = module_classes
        return self

    def set_input_quantized_indexes(self, indexes: List[int]) -> PrepareCustomConfig:
        """The arguments of the model that will be quantized tensors."""
        self.input_quantized_indexes = indexes
        return self

    def set_output_quantized_indexes(self, indexes: List[int]) -> PrepareCustomConfig:
        """The results of the model that will be quantized tensors."""
        self.output_quantized_indexes = indexes
        return self


__getattr__ = _names.attributes_of(__name__)
