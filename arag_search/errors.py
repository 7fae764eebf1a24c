"""Every exception of the project.

AragError                     anything this project raises on purpose
├── ArgumentError             a value given by the caller is not allowed
├── QueryError                a query was refused; holds every problem (in query/problems.py)
├── UnknownChunkError         a chunk id that the index does not hold
├── UnknownDocumentError      a document id that the index does not hold
├── NotServedError            the index was built without what was asked for
├── IndexProblemError         something about a location
│   ├── IndexNotFoundError    nothing there, or nothing finished yet
│   ├── IndexExistsError      a build would replace an index, and was not told to
│   ├── IndexLockedError      another builder is at work there
│   ├── UnfinishedUpdateError an update was stopped, and is to be finished or undone first
│   ├── IndexVersionError     the index was written by another version of the format
│   ├── IndexDamagedError     files and manifest do not agree
│   └── IndexClosedError      the index was used after close()
├── VectorsError              something about the vectors beside an index
│   ├── VectorsNotFoundError  none there, or none finished yet
│   ├── VectorsLockedError    another process publishes vectors there
│   ├── VectorsVersionError   written by another version of the format
│   ├── VectorsDamagedError   files and records do not agree
│   ├── VectorsStaleError     passages were added to the index since
│   └── VectorsMismatchError  of another model, or of another corpus
├── SourceError               the corpus cannot be read as it stands; names file and line
│   └── DuplicateIdError      an id of a document was there before
├── BuildError                the build cannot go on (no space, too large for an ordinal)
│   └── WorkerLostError       a worker process of it was killed
├── EngineError               the engine below us failed
│   ├── JvmError              the Java part cannot be started
│   ├── AccessError           a server refuses the credentials, or its certificate is not trusted
│   ├── QueryTimeoutError     the execution of a query took longer than it may
│   ├── UnavailableError      no answer within the budget: nodes down, overload, time-outs
│   └── RefusedError          a server answers, and will not do it
├── ConfigError               a preset, price list or setting is not what it should be
├── MissingExtraError         a package is not installed that an extra brings
├── QuestionsError            a file of questions cannot be read as it stands
├── RunError                  a folder of records does not fit what is to be done with it
├── ModelError                a language model gave no reply
│   ├── ModelAccessError      wrong key, unknown model, or no permission: retrying is no use
│   ├── ModelUnavailableError rate limits, time-outs, 5xx, cut connections, retries included
│   ├── ModelReplyError       a reply that holds nothing, or not what the protocol wants
│   ├── ContextLengthError    the request is longer than the model takes
│   └── NotRecordedError      a replayed run asks for a call that was not recorded
└── EncoderError              texts got no vectors
    ├── EncoderNotFoundError  no such model here, and none to be fetched
    ├── EncoderFilesError     the files of a model cannot be loaded
    ├── EncoderAccessError    wrong key, unknown model, or no permission: retrying is no use
    ├── EncoderUnavailableError  no vectors for now: rate limits, time-outs, 5xx; or closed
    ├── EncoderReplyError     what came is no vectors: their number, dimension or values are wrong
    └── EncoderLengthError    a text is longer than the model takes

A message has up to four parts: what is wrong, where, what is allowed, what to do next.
"""

from __future__ import annotations


class AragError(Exception):
    """A failure with a message in up to four parts.

    Parameters are the parts; ``str()`` joins those that are given, one a line.
    """

    def __init__(self, what: str, *, where: str = "", allowed: str = "", do: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
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
    """A value given by the caller is not allowed."""


class UnknownChunkError(AragError, LookupError):
    """A chunk id that the index does not hold."""


class UnknownDocumentError(AragError, LookupError):
    """A document id that the index does not hold."""


class NotServedError(AragError):
    """The index was built without what was asked for."""


class IndexProblemError(AragError):
    """Something about a location."""


class IndexNotFoundError(IndexProblemError):
    """Nothing there, or nothing finished yet."""


class IndexExistsError(IndexProblemError):
    """A build would replace an index, and was not told to."""


class IndexLockedError(IndexProblemError):
    """Another builder is at work there."""


class UnfinishedUpdateError(IndexProblemError):
    """An update was stopped, and is to be finished or undone first."""


class IndexVersionError(IndexProblemError):
    """The index was written by another version of the format."""


class IndexDamagedError(IndexProblemError):
    """Files and manifest do not agree."""


class IndexClosedError(IndexProblemError):
    """The index was used after ``close()``."""


class VectorsError(AragError):
    """Something about the vectors beside an index."""


class VectorsNotFoundError(VectorsError):
    """None there, or none finished yet."""


class VectorsLockedError(VectorsError):
    """Another process publishes vectors there."""


class VectorsVersionError(VectorsError):
    """The vectors were written by another version of the format."""


class VectorsDamagedError(VectorsError):
    """Files and records do not agree."""


class VectorsStaleError(VectorsError):
    """Passages were added to the index since it was embedded."""


class VectorsMismatchError(VectorsError):
    """The vectors are of another model, or of another corpus."""


class SourceError(AragError):
    """The corpus cannot be read as it stands."""


class DuplicateIdError(SourceError):
    """The id of a document, ``doc_id``, was there before."""

    def __init__(self, doc_id: str, *, where: str, do: str) -> None:
        super().__init__(f'The id "{doc_id}" was there before.', where=where, do=do)
        self.doc_id = doc_id


class BuildError(AragError):
    """The build cannot go on."""


class WorkerLostError(BuildError):
    """A worker process of a build has ended by itself or was killed."""


class EngineError(AragError):
    """The engine below us failed."""


class JvmError(EngineError):
    """The Java part cannot be started."""


class AccessError(EngineError):
    """A server refuses the credentials, or its certificate is not trusted."""


class UnavailableError(EngineError):
    """No answer within the budget: nodes down, overload, time-outs."""


class QueryTimeoutError(EngineError):
    """The execution of a query took longer than it may; there is no partial answer."""


class RefusedError(EngineError):
    """A server answers, and will not do it: ``status`` and ``kind`` (the outermost type of the
    error, such as ``index_not_found_exception``) tell what is the matter."""

    def __init__(self, what: str, *, status: int, kind: str, where: str) -> None:
        super().__init__(what, where=where)
        self.status = status
        self.kind = kind


class ConfigError(AragError, ValueError):
    """A preset, price list or setting is not what it should be."""


class MissingExtraError(AragError, ImportError):
    """A package is not installed that an extra of this project brings."""


class QuestionsError(AragError, ValueError):
    """A file of questions cannot be read as it stands; names file and line."""


class RunError(AragError):
    """A folder of records does not fit what is to be done with it."""


class ModelError(AragError):
    """A language model gave no reply."""


class ModelAccessError(ModelError):
    """Wrong key, unknown model, or no permission: retrying is no use."""


class ModelUnavailableError(ModelError):
    """Rate limits, time-outs, 5xx, cut connections, retries included."""


class ModelReplyError(ModelError):
    """A reply that holds nothing, or not what the protocol wants."""


class ContextLengthError(ModelError):
    """The request is longer than the model takes."""


class NotRecordedError(ModelError):
    """A replayed run asks for a call that was not recorded."""


class EncoderError(AragError):
    """Texts got no vectors."""


class EncoderNotFoundError(EncoderError):
    """No such model here, and none to be fetched."""


class EncoderFilesError(EncoderError):
    """The files of a model cannot be loaded."""


class EncoderAccessError(EncoderError):
    """Wrong key, unknown model, or no permission: retrying is no use."""


class EncoderUnavailableError(EncoderError):
    """No vectors for now: rate limits, time-outs, 5xx, cut connections, retries included; or
    the encoder is closed."""


class EncoderReplyError(EncoderError):
    """What came is no vectors: their number, dimension or values are wrong."""


class EncoderLengthError(EncoderError):
    """A text is longer than the model takes."""
