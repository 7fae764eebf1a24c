"""Exporting a model: its ONNX files are made where torch is, and compared with the model."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from arag_search.corpus import split_at
from arag_search.errors import ArgumentError, EncoderFilesError
from arag_search.system.durable import write_atomically
from arag_search.system.extras import check_extra
from arag_search.system.progress import duration
from arag_search.vectors.encoders.model_files import (
    EXPORT_FILE,
    ONNX_FILE,
    hub_folder,
    local_folder,
    onnx_revision_of,
    settings_of,
)
from arag_search.vectors.encoders.onnx import (
    Exported,
    OnnxEncoder,
    exports_folder,
    modules_of,
    read_export,
)
from arag_search.vectors.encoders.sentence_transformer import SentenceTransformerEncoder, quiet
from index_jobs.build.report import Report
from index_jobs.cutting.sentences import sentence_ends

COMPARED_TEXTS = 1_000
LEAST_COSINE = 0.9999
_ODD = (
    *("", " ", "\n\t", "\x00", "a", "?", "word", "漢字かな交じり文", "ไม่มีช่องว่าง", "العربية"),
    *("e\u0301", "\u202eabc", "🎉👩‍👩‍👧", "\ufffd", "ﬁ", "İstanbul ß ẞ", "x\u00a0y\u200bz"),
    *("[CLS] [SEP] <s> </s> <pad>", "1234567890 " * 9, "https://a.b/c?d=e&f", "snake_case::x->y"),
)
_LONG_TEXTS, _REPEATED = 12, 40
_ALONE = 40


@dataclass(frozen=True, slots=True)
class ExportReport(Report):
    """The ONNX files of a model: where they are, and how they compare with the model."""

    model: str
    folder: str
    revision: str
    texts: int
    least_cosine: float
    bytes: int
    seconds: float

    def to_text(self) -> str:
        """Return the report in words."""
        return (
            f"Exported {self.model} to {self.folder}: {self.bytes / 1e6:,.1f} MB in"
            f" {duration(self.seconds)}.\n"
            f"compared: {self.texts:,} texts, cosine {self.least_cosine:.6f} or more"
        )


def export_model(model: str, to: Path | str | None = None) -> ExportReport:
    """Make the ONNX files of a model of sentence-transformers in the folder ``to`` (None: in the
    cache, where searches look for them), with its settings.

    The files are kept only if they give COMPARED_TEXTS texts, among them empty, odd and cut ones,
    vectors with a cosine of LEAST_COSINE at least with those of the model. An earlier export in the
    folder is replaced. Raises ArgumentError, MissingExtraError, and what the encoders raise.
    """
    for package in ("onnx", "onnxscript", "onnxruntime"):
        check_extra("export", package)
    began = time.monotonic()
    modules_of(local_folder(model) or hub_folder(model))
    encoder = SentenceTransformerEncoder(model, device="cpu")
    folder = exports_folder(encoder.identity.revision) if to is None else Path(to).expanduser()
    if folder.exists() and any(folder.iterdir()) and read_export(folder) is None:
        raise ArgumentError(
            "The folder holds other files.",
            where=str(folder),
            allowed="a new or empty folder, or one with an earlier export",
            do="Name another folder with --to.",
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as place:
        work = Path(place) / "export"
        _write_graph(encoder, work)
        exported = _compared(encoder, work)
        write_atomically(work / EXPORT_FILE, json.dumps(exported._asdict()).encode())
        shutil.rmtree(folder, ignore_errors=True)
        work.rename(folder)
    return ExportReport(
        model=model,
        folder=str(folder),
        revision=exported.revision,
        texts=exported.texts,
        least_cosine=exported.least_cosine,
        bytes=sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()),
        seconds=round(time.monotonic() - began, 3),
    )


def _write_graph(encoder: SentenceTransformerEncoder, work: Path) -> None:
    """Write the settings of a model, and the graph of its transformer for any number of texts and
    of tokens. Raises EncoderFilesError for a model that cannot be exported."""
    for file in settings_of(encoder.folder):
        copy = work / file.relative_to(encoder.folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    (work / ONNX_FILE).parent.mkdir()
    with quiet():
        import torch

        transformer: Any = encoder.model[0].auto_model.eval()
        features = dict(encoder.model.tokenizer(["a b c", "d"], padding=True, return_tensors="pt"))

        class Tokens(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.transformer = transformer

            def forward(self, *values: Any) -> Any:
                named = dict(zip(features, values, strict=True))
                return self.transformer(**named, return_dict=True).last_hidden_state

        of_any_size = dict.fromkeys((0, 1), cast(Any, torch).export.Dim.DYNAMIC)
        try:
            cast(Any, torch).onnx.export(
                Tokens().eval(),
                tuple(features.values()),
                str(work / ONNX_FILE),
                input_names=list(features),
                output_names=["last_hidden_state"],
                dynamic_shapes=(tuple(of_any_size for _ in features),),
                optimize=False,  # onnxruntime does it when it loads the graph
                verbose=False,
            )
        except Exception as error:  # whatever the exporter raises for what it does not support
            first = (str(error).splitlines() or [""])[0]
            raise EncoderFilesError(
                f"The model cannot be exported ({type(error).__name__}: {first}).",
                where=str(encoder.folder),
                do="Use the model itself, or ONNX files that others have made: onnx:MODEL.",
            ) from error


def _compared(encoder: SentenceTransformerEncoder, work: Path) -> Exported:
    """Compare the vectors of both, as documents and as queries, in batches and alone. Raises
    EncoderFilesError if they differ."""
    texts = compared_texts()
    onnx = OnnxEncoder(str(work), query_instruction=encoder.identity.query_instruction)
    of_both = [
        {name: value for name, value in asdict(identity).items() if name in _SHARED}
        for identity in (encoder.identity, onnx.identity)
    ]
    expected, vectors = encoder.encode(texts), onnx.encode(texts)
    some = texts[:: len(texts) // _ALONE]
    cosines: list[float] = (expected * vectors).sum(1).tolist()
    cosines += (encoder.encode_queries(some) * onnx.encode_queries(some)).sum(1).tolist()
    for text, vector in zip(some, expected[:: len(texts) // _ALONE], strict=True):
        cosines.append(float(onnx.encode([text])[0] @ vector))
    onnx.close()
    least = min(cosines)
    if not least >= LEAST_COSINE or of_both[0] != of_both[1]:
        text = [*texts, *some, *some][cosines.index(least)]
        raise EncoderFilesError(
            f"The ONNX files differ from the model: {of_both[1]}, cosine {least:.6f} for "
            f"{text[:60]!r}.",
            where=str(encoder.folder),
            allowed=f"{of_both[0]}, cosine {LEAST_COSINE} or more for each of {len(texts):,} texts",
            do="Use the model itself, with the extra semantic.",
        )
    instruction = encoder.identity.query_instruction
    revision = encoder.identity.revision
    return Exported(revision, onnx_revision_of(work), instruction, len(texts), min(1.0, least))


_SHARED = ("dimension", "max_tokens", "query_instruction")


def compared_texts() -> Sequence[str]:
    """Return COMPARED_TEXTS texts: odd ones, and the sentences of the sample corpus, then two of
    them, and so on. Some are repeated, so that models of 512 tokens cut them."""
    lines = (files("arag_search") / "sample" / "corpus.jsonl").read_text("utf-8").splitlines()
    articles: list[str] = [json.loads(line)["text"] for line in lines]
    sentences = [part for text in articles for part in split_at(text, tuple(sentence_ends(text)))]
    texts: list[str] = [*_ODD]
    for number in range(COMPARED_TEXTS - len(texts)):
        more, start = divmod(number, len(sentences))
        text = "".join(sentences[start : start + 1 + more])
        texts.append(text * _REPEATED if number < _LONG_TEXTS else text)
    return texts
