"""Models in ONNX files: small ones whose vectors can be worked out by hand, and exported ones.

    python -m tests.support.onnx_models FOLDER

writes an encoder into the folder, for an environment that has no package to make one.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from arag_search.vectors.encoders.model_files import ONNX_FILE, SETTINGS, local_folder
from arag_search.vectors.encoders.sentence_transformer import quiet

WORDS = ("vivaldi", "opera", "venice", "rain", "rome", "libretto")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
DIMENSION = 4
MEAN = {"pooling_mode_mean_tokens": True}


def token_vectors() -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the vector of each token, in the order of the special tokens and the words."""
    random = np.random.default_rng(7)
    return random.normal(size=(len(SPECIAL) + len(WORDS), DIMENSION)).astype(np.float32)


def write_encoder(
    folder: Path,
    *,
    pooling: Mapping[str, object] = MEAN,
    modules: Sequence[str] = ("Transformer", "Pooling", "Normalize"),
    max_tokens: int = 6,
    side: str = "right",
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    **settings: object,
) -> Path:
    """Write an encoder whose token vectors are those of ``token_vectors``, in the files of
    sentence-transformers. ``settings`` are of its transformer."""
    from onnx import helper, numpy_helper

    nodes = [helper.make_node("Gather", ["vectors", "input_ids"], ["last_hidden_state"])]
    vectors = numpy_helper.from_array(token_vectors(), "vectors")
    _write_graph(folder, nodes, [vectors], inputs, ("last_hidden_state", ["n", "t", DIMENSION]))
    _write_tokenizer(folder, side)
    paths = ("", "1_Pooling", "2_Normalize", "3_More")
    listed = [
        {
            "idx": at,
            "name": str(at),
            "path": paths[at],
            "type": f"sentence_transformers.models.{kind}",
        }
        for at, kind in enumerate(modules)
    ]
    _write(folder / "modules.json", listed)
    _write(folder / "1_Pooling" / "config.json", pooling)
    _write(folder / "sentence_bert_config.json", {"max_seq_length": max_tokens, **settings})
    return folder


def export_model(model: str, folder: Path) -> Path:
    """Write the settings of a model of sentence-transformers, and the graph of its transformer for
    any number of texts and of tokens."""
    original = local_folder(model)
    assert original is not None
    for file in (file for kind in SETTINGS for file in original.rglob(kind)):
        copy = folder / file.relative_to(original)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    (folder / ONNX_FILE).parent.mkdir()
    with quiet():
        import torch
        from sentence_transformers import SentenceTransformer

        loaded: Any = SentenceTransformer(str(original), device="cpu")
        transformer: Any = loaded[0].auto_model.eval()
        features = dict(loaded.tokenizer(["a b c", "d"], padding=True, return_tensors="pt"))

        class Tokens(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.transformer = transformer

            def forward(self, *values: Any) -> Any:
                named = dict(zip(features, values, strict=True))
                return self.transformer(**named, return_dict=True).last_hidden_state

        of_any_size = dict.fromkeys((0, 1), cast(Any, torch).export.Dim.DYNAMIC)
        cast(Any, torch).onnx.export(
            Tokens().eval(),
            tuple(features.values()),
            str(folder / ONNX_FILE),
            input_names=list(features),
            output_names=["last_hidden_state"],
            dynamic_shapes=(tuple(of_any_size for _ in features),),
            optimize=False,  # onnxruntime does it when it loads the graph
            verbose=False,
        )
    return folder


def _write_graph(
    folder: Path,
    nodes: Sequence[Any],
    constants: Sequence[Any],
    inputs: Sequence[str],
    output: tuple[str, list[Any]],
) -> None:
    from onnx import TensorProto, helper, save

    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "t"]) for name in inputs],
        [helper.make_tensor_value_info(output[0], TensorProto.FLOAT, output[1])],
        constants,
    )
    opset = helper.make_opsetid("", 17)
    (folder / "onnx").mkdir(parents=True)
    save(
        helper.make_model(graph, opset_imports=[opset], ir_version=8),
        str(folder / "onnx" / "model.onnx"),
    )


def _write_tokenizer(folder: Path, side: str) -> None:
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordLevel

    tokens = {token: number for number, token in enumerate((*SPECIAL, *WORDS))}
    tokenizer: Any = Tokenizer(WordLevel(tokens, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(token, tokens[token]) for token in ("[CLS]", "[SEP]")],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"pad_token": "[PAD]", "padding_side": side, "model_max_length": 64}
    _write(folder / "tokenizer_config.json", settings)
    _write(folder / "config.json", {"max_position_embeddings": 64, "pad_token_id": 0})


def _write(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content), "utf-8")


if __name__ == "__main__":
    write_encoder(Path(sys.argv[1]))
