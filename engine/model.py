"""Pydantic models whose fields are collected when a model is first used.

With `defer_build` pydantic still evaluates the annotations of a model, collects its fields and makes six
objects for it, 0.2 ms a class; a start imports some four hundred models and uses a dozen. A class
`Payload(BaseModel, metaclass=LateModel)`, and what is derived from it, costs 0.01 ms at import. What it is
afterwards is what pydantic makes of it: pydantic's own metaclass does its work on the class that is there.
It is not for models with `use_attribute_docstrings`: pydantic reads these while the class statement runs.
"""

from __future__ import annotations

import threading
from abc import ABCMeta
from typing import TYPE_CHECKING, Any, Generic

from pydantic import BaseModel

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass as LateModel
else:

    class _PresentClass(ABCMeta):
        """Returns the class that is there, where pydantic's metaclass makes one."""

        def __new__(mcs, name, bases, namespace, present=None, **options):
            """The class with what pydantic put into its namespace."""
            if present is None:
                return super().__new__(mcs, name, bases, namespace, **options)
            for name in ("model_config", "__class_vars__", "__private_attributes__"):
                setattr(present, name, namespace[name])
            return present

    class LateModel(type(BaseModel), _PresentClass):
        """The metaclass of models that are built late; generic ones are built at once."""

        def __new__(mcs, name, bases, namespace, **options):
            """The class as it is written, without anything of pydantic."""
            if Generic in bases or any(option.startswith("__pydantic") for option in options):
                return super().__new__(mcs, name, bases, namespace, **options)
            late = ABCMeta.__new__(mcs, name, bases, {**namespace, **_UNBUILT}, **options)
            _written[late] = namespace
            return late


__all__ = ["LateModel"]
_written: dict[type, dict[str, Any]] = {}
"""The namespaces of models that are not built yet."""
_lock = threading.RLock()


class _Unbuilt(dict[str, Any]):
    """Stands for an attribute that pydantic makes: whoever asks for it has the model built first.

    It is an empty dictionary to pydantic, which looks into a class for the fields that it has so far.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def __get__(self, _instance: object, owner: type) -> Any:
        with _lock:
            if owner in _written:
                _build(owner)
            present = vars(owner).get(self._name) is not self
            # Where it is not there yet, this thread is building the model: it sees what the parent has.
            return getattr(owner if present else super(owner, owner), self._name)


_MADE = "__pydantic_fields__ __pydantic_validator__ __pydantic_serializer__ __get_pydantic_core_schema__"
_UNBUILT = {name: _Unbuilt(name) for name in (*_MADE.split(), "model_json_schema", "model_rebuild")}


def _build(late: type) -> None:
    for parent in late.__bases__:
        if parent in _written:
            _build(parent)
    options = {"present": late, "__pydantic_reset_parent_namespace__": False}
    make: Any = type(BaseModel).__new__
    make(type(late), late.__name__, late.__bases__, _written.pop(late), **options)
    for name, unbuilt in _UNBUILT.items():
        if vars(late).get(name) is unbuilt:
            delattr(late, name)
