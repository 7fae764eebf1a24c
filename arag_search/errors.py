"""Every exception of the project.

AragError                     a failure that this project raises on purpose
├── ArgumentError             a value from the caller is not allowed
│   └── MassDeletionError     a synchronisation would delete most documents of a source
├── QueryError                a query was rejected; holds every problem (in query/problems.py)
├── UnknownChunkError         the index holds no chunk with this id
├── UnknownDocumentError      the index holds no document with this id
├── NotServedError            the index was built without the requested feature
├── IndexProblemError         a location has a problem
│   ├── IndexNotFoundError    no index is there, or no finished one
│   ├── IndexExistsError      a build would replace an index without permission
│   ├── IndexLockedError      another builder works there
│   ├── UnfinishedUpdateError an interrupted update must be finished or undone first
│   ├── IndexVersionError     the index has another version of the format
│   ├── IndexDamagedError     files and manifest do not agree
│   └── IndexClosedError      the index was used after close()
├── VectorsError              the vectors beside an index have a problem
│   ├── VectorsNotFoundError  no vectors are there, or no finished ones
│   ├── VectorsLockedError    another process publishes vectors there
│   ├── VectorsVersionError   the vectors have another version of the format
│   ├── VectorsDamagedError   files and records do not agree
│   └── VectorsMismatchError  the vectors are of another model, or do not fit the index
├── SourceError               the corpus cannot be read; names file and line
│   ├── BadFileError          a file of a source cannot be read; the others can
│   ├── LeftOutError          a file is left out for what it holds, such as a private key
│   ├── FileLimitError        a file needs more time or memory than it may take
│   │   └── NotInTimeError    there was less time for a file than it may take
│   └── DuplicateIdError      a document has the id of an earlier one
├── BuildError                the build cannot continue (no space, ordinals exhausted)
│   └── WorkerLostError       a worker process of the build ended or was killed
├── EngineError               the search engine failed
│   ├── JvmError              the Java part cannot be started
│   ├── AccessError           a server rejects the credentials, or its certificate is not trusted
│   ├── QueryTimeoutError     a query took longer than its limit
│   ├── UnavailableError      no answer within the time limit: nodes down, overload, time-outs
│   │   └── BusyError         this server has too many calls to answer one
│   └── RefusedError          a server answered that it will not do it
├── ConfigError               a preset, price list or setting is wrong
├── MissingExtraError         a package of an extra is not installed
├── QuestionsError            a file of questions cannot be read
├── RunError                  a folder of records does not fit the requested operation
├── ModelError                a language model gave no reply
│   ├── ModelAccessError      wrong key, unknown model, or no permission: retrying is no use
│   ├── ModelUnavailableError rate limits, time-outs, 5xx, cut connections, even after retries
│   ├── ModelReplyError       the reply is empty, or breaks the protocol
│   ├── ContextLengthError    the request is longer than the model accepts
│   └── NotRecordedError      a replayed run asks for a call that was not recorded
└── EncoderError              texts got no vectors
    ├── EncoderNotFoundError  the model is not here and cannot be fetched
    ├── EncoderFilesError     the files of a model cannot be loaded
    ├── EncoderAccessError    wrong key, unknown model, or no permission: retrying is no use
    ├── EncoderUnavailableError  no vectors for now, even after retries; or the encoder is closed
    ├── EncoderReplyError     vectors of a wrong number, dimension or value
    └── EncoderLengthError    a text is longer than the model accepts

A message has up to four parts: the problem, its place, the allowed values, the next action.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160), 0x2028, 0x2029)}


def on_one_line(name: str) -> str:
    """Return a name with escapes for characters that end a line, or command a terminal. So it
    cannot be taken for more than a name."""
    return name.translate(_CONTROLS)


class AragError(Exception):
    """A failure with a message in up to four parts.

    The parameters are the parts; ``str()`` joins all but empty ones, one per line. ``refused`` are
    the words with which an endpoint refused the contents of a request; other requests may be
    answered. It is "" for every other error.
    """

    refused = ""

    def __init__(self, what: str, *, where: str = "", allowed: str = "", do: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = on_one_line(where)
        self.allowed = allowed
        self.do = do

    def __str__(self) -> str:
        parts = [self.what]
        if self.where:
            parts.append(f"Where: {self.where}")
        if self.allowed:
            parts.append(f"Allowed: {self.allowed}")
        if self.do:
            parts.append(f"Do: {self.do}")
        return "\n".join(parts)


class ArgumentError(AragError, ValueError):
    """A value from the caller is not allowed."""


class MassDeletionError(ArgumentError):
    """A synchronisation would delete most documents of a source."""


class VectorsNotNamedError(ArgumentError):
    """No folder of vectors is named for an index that has none of its own."""


class UnknownChunkError(AragError, LookupError):
    """The index holds no chunk with this id."""


class UnknownDocumentError(AragError, LookupError):
    """The index holds no document with this id."""


class NotServedError(AragError):
    """The index was built without the requested feature."""


class IndexProblemError(AragError):
    """A location of an index has a problem."""


class IndexNotFoundError(IndexProblemError):
    """No index is there, or no finished one."""


class IndexExistsError(IndexProblemError):
    """A build would replace an index without permission."""


class IndexLockedError(IndexProblemError):
    """Another builder works there."""


class UnfinishedUpdateError(IndexProblemError):
    """An interrupted update must be finished or undone first."""


class IndexVersionError(IndexProblemError):
    """The index was written by another version of the format."""


class IndexDamagedError(IndexProblemError):
    """The files and the manifest of an index do not agree."""


class IndexClosedError(IndexProblemError):
    """The index was used after ``close()``."""


class VectorsError(AragError):
    """The vectors beside an index have a problem."""


class VectorsNotFoundError(VectorsError):
    """No vectors are there, or no finished ones."""


class VectorsLockedError(VectorsError):
    """Another process publishes vectors there."""


class VectorsVersionError(VectorsError):
    """The vectors were written by another version of the format."""


class VectorsDamagedError(VectorsError):
    """The files and the records of vectors do not agree."""


class VectorsMismatchError(VectorsError):
    """The vectors are of another model, or of another corpus."""


class SourceError(AragError):
    """The corpus cannot be read; the message names file and line.

    ``is_file`` is true if the error is about a whole file, and false if it is about a record.
    """

    is_file = False


class BadFileError(SourceError):
    """A file of a source cannot be read, or not to its end; the others can."""

    is_file = True


class LeftOutError(SourceError):
    """A file is left out for what it is: ``what`` says it, such as "a private key"."""

    @property
    def kind(self) -> str:
        """The words with which reports count such files."""
        return f"left out, {self.what}" + (f" ({self.do})" if self.do else "")


class FileLimitError(SourceError):
    """A file needs more time or memory than it may take. It ``is_slow`` if it alone takes longer
    than an answer may wait."""

    is_slow = True


class NotInTimeError(FileLimitError):
    """There was less time for a file than it may take, because other files took theirs."""

    kind = "not read, because files that failed had taken too long (sync tries them again)"
    """The words with which reports count such files."""

    def __init__(self, where: str, *, is_slow: bool = False) -> None:
        super().__init__("There was no time to read the file.", where=where)
        self.is_slow = is_slow


class DuplicateIdError(SourceError):
    """A document has the id of an earlier one."""

    def __init__(self, doc_id: str, *, where: str, do: str, is_file: bool = False) -> None:
        what = "two files would get it" if is_file else "two records have it"
        super().__init__(f'Duplicate id "{doc_id}": {what}.', where=where, do=do)
        self.is_file = is_file


class BuildError(AragError):
    """The build cannot continue."""


class WorkerLostError(BuildError):
    """A worker process of a build ended by itself or was killed."""


class EngineError(AragError):
    """The search engine failed."""


class JvmError(EngineError):
    """The Java part cannot be started."""


class AccessError(EngineError):
    """A server rejects the credentials, or its certificate is not trusted."""


class UnavailableError(EngineError):
    """A server gave no answer within the time limit: nodes are down, overloaded or too slow."""


class BusyError(UnavailableError):
    """This server has too many calls to answer one."""


class QueryTimeoutError(EngineError):
    """A query took longer than its limit; there is no partial answer."""


class RefusedError(EngineError):
    """A server answered that it will not do it.

    ``status`` and ``kind`` (the outermost type of the error, such as
    ``index_not_found_exception``) say why.
    """

    def __init__(self, what: str, *, status: int, kind: str, where: str) -> None:
        super().__init__(what, where=where)
        self.status = status
        self.kind = kind


class ConfigError(AragError, ValueError):
    """A preset, price list or setting is wrong."""


class MissingExtraError(AragError, ImportError):
    """A package that an extra of this project brings is not installed."""


class QuestionsError(AragError, ValueError):
    """A file of questions cannot be read; the message names file and line."""


class RunError(AragError):
    """A folder of records does not fit the requested operation."""


class ModelError(AragError):
    """A language model gave no reply."""


class ModelAccessError(ModelError):
    """The key is wrong, the model unknown, or permission missing: retrying is no use."""


class ModelUnavailableError(ModelError):
    """The endpoint failed even after retries: rate limits, time-outs, 5xx, cut connections."""


class ModelReplyError(ModelError):
    """The reply is empty, or breaks the protocol."""


class ContextLengthError(ModelError):
    """The request is longer than the model accepts."""


class NotRecordedError(ModelError):
    """A replayed run asks for a call that was not recorded."""


class EncoderError(AragError):
    """An encoder gave texts no vectors.

    If an endpoint refused some of the texts for good, ``refused_texts`` are its words by the place
    of the text. ``vectors`` then has a row for each text; rows of refused texts mean nothing.
    """

    refused_texts: Mapping[int, str] = {}
    vectors: Any = None


class EncoderNotFoundError(EncoderError):
    """The model is not here and cannot be fetched."""


class EncoderFilesError(EncoderError):
    """The files of a model cannot be loaded."""


class EncoderAccessError(EncoderError):
    """The key is wrong, the model unknown, or permission missing: retrying is no use."""


class EncoderUnavailableError(EncoderError):
    """The endpoint failed even after retries (rate limits, time-outs, 5xx, cut connections), or the
    encoder is closed."""


class EncoderReplyError(EncoderError):
    """The endpoint returned vectors of a wrong number, dimension or value."""


class EncoderLengthError(EncoderError):
    """A text is longer than the model accepts."""
