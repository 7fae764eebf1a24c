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
    has_weights,
    hub_folder,
    local_folder,
)
from arag_search.vectors.encoders.prefixed import LocalEncoder, Prompts, Task
from arag_search.vectors.encoders.sentence_transformer import CPU_BATCH_SIZE, MOST_TOKENS

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
_TOKEN_VECTORS = ("last_hidden_state", "token_embeddings")


class OnnxEncoder(LocalEncoder):
    """A model by its ONNX files: in a folder, an installed package, or on the hub.

    It gives the vectors of SentenceTransformerEncoder: pooling, length and prompts are read from
    the model's own files. Its identity is of kind "onnx".

    Raises MissingExtraError, EncoderNotFoundError, and EncoderFilesError, also for a model with a
    part that would change its vectors and is not known here.
    """

    kind = "onnx"
    advice = f'Download {ONNX_FILE} again, or make it: "Without torch" in index_jobs/VECTORS.md.'

    def __init__(self, name: str, **options: Unpack[EncoderOptions]) -> None:
        check_extra("onnx", "onnxruntime")
        check_extra("onnx", "tokenizers")
        name = name.removeprefix(PREFIX)
        folder = local_folder(name) or hub_folder(name, onnx=True)
        super().__init__(f"{PREFIX}{name}", folder, options)

    def _load(self, folder: Path, options: EncoderOptions) -> tuple[Any, Prompts, int | None]:
        """Load tokenizer and graph; onnxruntime uses the cores that this process may use."""
        import onnxruntime
        from tokenizers import Tokenizer

        self._batch_size = options.get("batch_size") or CPU_BATCH_SIZE
        part, self._pooling, max_tokens = _modules_of(folder)
        config, settings = _read(part / "config.json"), _read(part / "tokenizer_config.json")
        if max_tokens is None:
            bounds = settings.get("model_max_length"), config.get("max_position_embeddings")
            max_tokens = min(MOST_TOKENS, *(int(bound) for bound in bounds if bound))
        tokenizer: Any = Tokenizer.from_file(str(part / "tokenizer.json"))
        tokenizer.no_truncation()
        if max_tokens < MOST_TOKENS:
            side = settings.get("truncation_side", "right")
            tokenizer.enable_truncation(max_tokens, direction=side)
        # Some graphs know by its number what is padding.
        token: Any = settings.get("pad_token")
        token = token if isinstance(token, str | None) else token["content"]
        pad = tokenizer.token_to_id(token) if token else None
        pad = config.get("pad_token_id") or 0 if pad is None else pad
        tokenizer.enable_padding(direction=settings.get("padding_side", "right"), pad_id=pad)
        running: Any = cast(Any, onnxruntime).SessionOptions()
        running.intra_op_num_threads = share_cores()
        running.inter_op_num_threads = 1
        running.log_severity_level = 3
        # Otherwise idle threads keep the cores busy.
        running.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session: Any = onnxruntime.InferenceSession(
            str(folder / ONNX_FILE), running, providers=["CPUExecutionProvider"]
        )
        prompts: Prompts = _read(folder / "config_sentence_transformers.json").get("prompts") or {}
        return (tokenizer, session), prompts, max_tokens if max_tokens < MOST_TOKENS else None

    def _encoded(self, model: Any, texts: list[str], prefix: str, task: Task) -> tuple[Any, int]:
        """Encode in batches of texts of like length."""
        import numpy as np

        tokenizer, session = model
        outputs = [item.name for item in session.get_outputs()]
        output = next((name for name in _TOKEN_VECTORS if name in outputs), outputs[0])
        order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
        cut, rows = 0, None
        for start in range(0, len(order), self._batch_size):
            places = order[start : start + self._batch_size]
            batch = tokenizer.encode_batch([prefix + texts[at] for at in places])
            cut += sum(bool(encoding.overflowing) for encoding in batch)
            values = {
                "input_ids": np.array([encoding.ids for encoding in batch], np.int64),
                "attention_mask": np.array([item.attention_mask for item in batch], np.int64),
                "token_type_ids": np.array([encoding.type_ids for encoding in batch], np.int64),
            }
            given = {item.name: values[item.name] for item in session.get_inputs()}
            tokens = session.run([output], given)[0].astype(np.float32, copy=False)
            pooled = self._pooled(tokens, values["attention_mask"].astype(bool))
            rows = np.empty((len(texts), pooled.shape[1]), np.float32) if rows is None else rows
            rows[places] = pooled
        return rows, cut

    def _pooled(self, tokens: Any, mask: Any) -> Any:
        """Return the vectors of texts from vectors of their tokens, of shape (texts, tokens, n)."""
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


def runs_by_onnx(name: str) -> bool:
    """Return whether a model is to be run by its ONNX files: it has no others, or nothing that
    could run others is installed."""
    folder = local_folder(name)
    has_torch = find_spec("sentence_transformers") is not None
    if folder is None:
        return not has_torch and find_spec("onnxruntime") is not None
    return (folder / ONNX_FILE).is_file() and not (has_torch and has_weights(folder))


# The settings of a model


def _read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_bytes()) if file.is_file() else {}


def _modules_of(folder: Path) -> tuple[Path, str, int | None]:
    """Return the folder of the tokenizer, the pooling, and the length of texts that the settings
    name, None if they leave it to the tokenizer. Raises EncoderFilesError for settings that would
    silently make other vectors."""
    listing = folder / MODULES_FILE
    modules = json.loads(listing.read_bytes())
    kinds = [module["type"].rpartition(".")[2] for module in modules]
    if kinds not in _MODULES:
        raise _unknown_part(listing, f"modules {', '.join(kinds) or 'none'}")
    part, pooling = (folder / module["path"] for module in modules[:2])
    file = part / "sentence_bert_config.json"
    settings = _read(file)
    for key, value in settings.items():
        if value and key != "max_seq_length" and value != _TRANSFORMER_KEYS.get(key):
            raise _unknown_part(file, f"{key} {json.dumps(value)}")
    return part, _pooling_of(pooling / "config.json"), settings.get("max_seq_length")


def _pooling_of(file: Path) -> str:
    settings: dict[str, Any] = json.loads(file.read_bytes())
    modes = settings.get("pooling_mode")
    if modes is None:
        active = [key for key, on in settings.items() if key.startswith("pooling_mode_") and on]
        modes = [_POOLING_KEYS.get(key, key) for key in active] or ["mean"]
    modes = [modes] if isinstance(modes, str) else modes
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise _unknown_part(file, f"pooling {', '.join(modes)}")
    if settings.get("include_prompt") is False:
        raise _unknown_part(file, "pooling without the prompt")
    return modes[0]


def _unknown_part(where: Path, what: str) -> EncoderFilesError:
    return EncoderFilesError(
        f"The model has a part that is not known here: {what}.",
        where=str(where),
        allowed=f"modules {' or '.join(map(', '.join, _MODULES))}; pooling {', '.join(POOLINGS)}",
        do='Use it with the extra "semantic", or choose another model.',
    )
