"""Counting tokens as GPT-4o does (o200k_base), offline."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import Any, cast


@functools.cache
def _counter() -> Callable[[str], int]:
    """The counting function of the compiled tokenizer.

    The package's own ``__init__`` computes the tables of every model it knows, which takes longer
    than everything else a first search does; its compiled part alone has what is needed here.
    """
    spec = importlib.util.find_spec("bpe_openai")
    for folder in spec.submodule_search_locations or () if spec else ():
        for path in sorted(Path(folder).glob("_bindings*")):
            if path.suffix in (".so", ".pyd"):
                loader = ExtensionFileLoader("bpe_openai._bindings", str(path))
                module_spec = importlib.util.spec_from_loader(loader.name, loader)
                if module_spec is not None:
                    module: Any = importlib.util.module_from_spec(module_spec)
                    loader.exec_module(module)
                    return cast(
                        Callable[[str], int], module.tokenizer_for_encoding("o200k_base").count
                    )
    from bpe_openai import get_encoding

    encoding = get_encoding("o200k_base")
    return lambda text: len(encoding.encode_ordinary(text))


def count_tokens(text: str) -> int:
    """Number of o200k_base tokens of ``text``; 0 for the empty string.

    Special tokens are counted as the plain text they are. A lone surrogate counts as U+FFFD.
    O(len(text)).
    """
    try:
        return _counter()(text)
    except UnicodeEncodeError:
        return _counter()(text.encode("utf-8", "replace").decode("utf-8"))
