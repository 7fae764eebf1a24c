"""OnnxEncoder: models by their ONNX files, with onnxruntime and tokenizers alone."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Unpack, cast

from arag_search.errors import EncoderFilesError
from arag_search.system.extras import check_extra
from arag_search.system.processes import share_cores
from arag_search.vectors.base import EncoderOptions
from arag_search.vectors.encoders.model_files import (
    MODULES_FILE,
    ONNX_FILE,
    has_onnx,
    has_weights,
    hub_folder,
    local_folder,
    onnx_revision_of,
)
from arag_search.vectors.encoders.prefixed import LocalEncoder, Task
from arag_search.vectors.encoders.sentence_transformer import (
    CPU_BATCH_SIZE,
    MOST_TOKENS,
)

PREFIX = "onnx:"
POOLINGS = ("mean", "cls", "max", "lasttoken")
_POOLING_KEYS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
}
_MODULES = (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
_TEXT_ALONE = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
_TRANSFORMER_KEYS = {
    "transformer_task": "feature-extraction",
    "modality_config": _TEXT_ALONE,
    "module_output_name": "token_embeddings",
}
"""What sentence-transformers may say of a transformer, and the only value that is read."""
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}
_TOKEN_VECTORS = ("last_hidden_state", "token_embeddings")


class OnnxModel:
    """A tokenizer and an ONNX graph, run in batches of texts of like length, and pooled.

    Texts are cut to ``max_tokens``. onnxruntime uses the cores that this process may use. Safe to
    use from several threads. Raises MissingExtraError and EncoderFilesError.
    """

    def __init__(self, folder: Path, batch_size: int | None) -> None:
        check_extra("onnx", "tokenizers")
        self._batch_size = batch_size or CPU_BATCH_SIZE
        saved = read_json(folder / "config_sentence_transformers.json").get("prompts")
        self.prompts = cast(dict[str, str | None], saved or {})
        part, self._pooling, max_tokens = modules_of(folder)
        cores = share_cores()
        self._folder = folder
        config = read_json(part / "config.json")
        settings = read_json(part / "tokenizer_config.json")
        self._pads_left = settings.get("padding_side") == "left"
        if max_tokens is None:
            max_tokens = _least(
                settings.get("model_max_length"), config.get("max_position_embeddings")
            )
        self.max_tokens = max_tokens
        try:
            import onnxruntime
            from tokenizers import Tokenizer

            self._tokenizer: Any = Tokenizer.from_file(str(part / "tokenizer.json"))
            self._tokenizer.no_padding()
            self._tokenizer.no_truncation()
            if max_tokens is not None:
                side = str(settings.get("truncation_side", "right"))
                self._tokenizer.enable_truncation(max_tokens, direction=side)
            options: Any = cast(Any, onnxruntime).SessionOptions()
            options.intra_op_num_threads = cores
            options.inter_op_num_threads = 1
            options.log_severity_level = 3
            # Otherwise idle threads keep the cores busy.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            self._session: Any = onnxruntime.InferenceSession(
                str(folder / ONNX_FILE), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # whatever files may raise: JSON, protobuf, the runtime
            first = (str(error).splitlines() or [""])[0]
            raise EncoderFilesError(
                f"The ONNX files of the model cannot be loaded ({type(error).__name__}: {first}).",
                where=str(folder),
                do="Download or make them again.",
            ) from error
        pad = settings.get("pad_token") or read_json(part / "special_tokens_map.json").get(
            "pad_token"
        )
        token = cast(dict[str, object], pad).get("content") if isinstance(pad, dict) else pad
        number = self._tokenizer.token_to_id(token) if isinstance(token, str) else None
        self._pad = number if number is not None else int(config.get("pad_token_id") or 0)
        self._inputs = [item.name for item in self._session.get_inputs()]
        self._output = self._chosen()

    def rows(self, texts: list[str], prefix: str, task: Task) -> tuple[Any, int]:
        """See LocalModel."""
        import numpy as np

        encodings = self._tokenizer.encode_batch([prefix + text for text in texts])
        order = sorted(range(len(texts)), key=lambda at: -len(encodings[at].ids))
        rows: list[Any] = []
        for start in range(0, len(order), self._batch_size):
            batch = [encodings[at] for at in order[start : start + self._batch_size]]
            width = max(1, len(batch[0].ids))  # the longest comes first
            ids = np.full((len(batch), width), self._pad, np.int64)
            types, mask = np.zeros_like(ids), np.zeros_like(ids)
            for row, encoding in enumerate(batch):
                count = len(encoding.ids)
                span = slice(width - count, width) if self._pads_left else slice(0, count)
                ids[row, span], types[row, span] = encoding.ids, encoding.type_ids
                mask[row, span] = encoding.attention_mask
            values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
            given = {name: values[name] for name in self._inputs}
            output = self._session.run([self._output], given)[0].astype(np.float32, copy=False)
            rows.append(self._pooled(output, mask.astype(bool)))
        ordered = np.concatenate(rows)
        result = np.empty_like(ordered)
        result[order] = ordered
        return result, sum(bool(encoding.overflowing) for encoding in encodings)

    def _pooled(self, tokens: Any, mask: Any) -> Any:
        """Return the vectors of texts from those of their tokens, of shape (texts, tokens, n)."""
        import numpy as np

        texts = np.arange(len(tokens))
        if self._pooling == "cls":
            return tokens[texts, mask.argmax(1)]
        if self._pooling == "lasttoken":
            return tokens[texts, mask.shape[1] - 1 - mask[:, ::-1].argmax(1)]
        if self._pooling == "max":
            return np.where(mask[:, :, None], tokens, -np.inf).max(1)
        weights = mask[:, None, :].astype(np.float32)
        return (weights @ tokens)[:, 0] / np.maximum(weights.sum(2), 1e-9)

    def _chosen(self) -> str:
        """Return the output to take. Raises EncoderFilesError for inputs or outputs that are
        unknown."""
        unknown = set(self._inputs) - _INPUTS
        if unknown:
            raise _unknown_part(
                self._folder / ONNX_FILE,
                f"the graph takes {', '.join(sorted(unknown))}",
                ", ".join(sorted(_INPUTS)),
            )
        names = [item.name for item in self._session.get_outputs()]
        known = [name for name in _TOKEN_VECTORS if name in names]
        if not known and len(names) > 1:
            raise _unknown_part(
                self._folder / ONNX_FILE,
                f"the graph returns {', '.join(names)}",
                f"one output, or one with the name {' or '.join(_TOKEN_VECTORS)}",
            )
        return known[0] if known else names[0]


class OnnxEncoder(LocalEncoder):
    """A model by its ONNX files: in a folder, an installed package, or on the hub.

    It gives the vectors of SentenceTransformerEncoder: pooling, length and prompts are read from
    the model's own files. Its identity is of kind "onnx", with the revision of the ONNX files.

    Raises MissingExtraError, EncoderNotFoundError, EncoderAccessError, ArgumentError, and
    EncoderFilesError for a model with a part that is not known here.
    """

    def __init__(self, name: str, **options: Unpack[EncoderOptions]) -> None:
        check_extra("onnx", "onnxruntime")
        name = name.removeprefix(PREFIX)
        folder = local_folder(name) or hub_folder(name, onnx=True)
        revision = onnx_revision_of(folder)
        model = OnnxModel(folder, options.get("batch_size"))
        super().__init__("onnx", f"{PREFIX}{name}", revision, model, options)


# The settings of a model


def read_json(file: Path) -> dict[str, Any]:
    """Return the object in a file of settings, empty if there is none. Raises EncoderFilesError."""
    if not file.is_file():
        return {}
    try:
        return dict(json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError):
        raise EncoderFilesError("The file is not an object in JSON.", where=str(file)) from None


def _unknown_part(where: Path, what: str, allowed: str) -> EncoderFilesError:
    """Return the error for a part of a model that only other libraries can run."""
    return EncoderFilesError(
        f"The model has a part that is not known here: {what}.",
        where=str(where),
        allowed=allowed,
        do='Use it with the extra "semantic", or choose another model.',
    )


def modules_of(folder: Path) -> tuple[Path, str, int | None]:
    """Return the folder of the tokenizer, the pooling, and the length of texts that the settings
    name, None if they leave it to the tokenizer. Raises EncoderFilesError."""
    listing = folder / MODULES_FILE
    try:
        modules = [
            (str(module["type"]).rpartition(".")[2], str(module["path"]))
            for module in cast(list[dict[str, str]], json.loads(listing.read_bytes()))
        ]
    except (OSError, ValueError, KeyError, TypeError):
        raise EncoderFilesError(
            f"{MODULES_FILE} is not a list of modules.",
            where=str(listing),
            allowed="the file that sentence-transformers saves with a model",
        ) from None
    if [kind for kind, _ in modules] not in _MODULES:
        named = ", ".join(kind for kind, _ in modules) or "none"
        raise _unknown_part(listing, f"modules {named}", " or ".join(map(", ".join, _MODULES)))
    part, pooling = (folder / path for _, path in modules[:2])
    file = part / "sentence_bert_config.json"
    settings = read_json(file)
    for key, value in settings.items():
        is_known = key in ("max_seq_length", "do_lower_case")
        if not is_known and value and value != _TRANSFORMER_KEYS.get(key):
            allowed = ", ".join(["max_seq_length", *_TRANSFORMER_KEYS])
            raise _unknown_part(file, f"{key} {json.dumps(value)}", allowed)
    if settings.get("do_lower_case"):
        raise _unknown_part(file, "do_lower_case true", "do_lower_case false")
    return part, _pooling_of(pooling / "config.json"), settings.get("max_seq_length")


def _pooling_of(file: Path) -> str:
    settings = read_json(file)
    modes: object = settings.get("pooling_mode")
    if modes is None:
        active = [key for key, on in settings.items() if key.startswith("pooling_mode_") and on]
        modes = [_POOLING_KEYS.get(key, key) for key in active] or ["mean"]
    names = [modes] if isinstance(modes, str) else cast(list[str], modes)
    if len(names) != 1 or names[0] not in POOLINGS:
        raise _unknown_part(file, f"pooling {', '.join(names)}", f"one of {', '.join(POOLINGS)}")
    if settings.get("include_prompt") is False:
        raise _unknown_part(file, "pooling without the prompt", "include_prompt true")
    return names[0]


def _least(*bounds: object) -> int | None:
    """Return the least bound on tokens, of those that are bounds; None if there is none."""
    numbers = [int(bound) for bound in bounds if isinstance(bound, int | float) and bound > 0]
    least = min(numbers, default=MOST_TOKENS)
    return least if least < MOST_TOKENS else None


def runs_by_onnx(name: str) -> bool:
    """Return whether a model is to be run by its ONNX files: it has no others, or nothing that
    could run others is installed."""
    folder = local_folder(name)
    has_torch = find_spec("sentence_transformers") is not None
    if folder is None:
        return not has_torch and find_spec("onnxruntime") is not None
    return has_onnx(folder) and not (has_torch and has_weights(folder))
