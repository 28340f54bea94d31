"""A directory or URL with small files. Each file is a letter: some messages of one side of a call, signed."""

from __future__ import annotations

import hmac
import re
import struct
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from sparkfusion.errors import ProtocolError
from sparkfusion.file_systems import classify_errors, open_url
from sparkfusion.runner.spark.remote_home import MAIL
from sparkfusion.runner.spark.transfers import WITHOUT_DIRECTORIES
from sparkfusion.urls import is_url

BEAT = f"beat{MAIL}"
"""The file that the coordinator writes again and again: it is alive, and the query is not over."""

_LETTER = re.compile(rf"([0-9a-f]{{32}})-(task|answer)-(\d{{8}}){re.escape(MAIL)}")
_LENGTH = struct.Struct("<I")
_SIGNATURE_BYTES = 32


class Mailbox:
    """Files of one directory or URL, which the coordinator makes and removes. Any thread may call any method.

    A file appears whole or not at all. Errors of the store are `SparkfusionError`s.

    Args:
        secret: the query's. Others who may write into the store do not have it, so they cannot sign a letter.
    """

    def __init__(self, location: str, secret: str) -> None:
        self._location = location
        self._secret = secret.encode()
        self._system, self._path = open_url(location) if is_url(location) else (fs.LocalFileSystem(), location)
        self._is_object_store = self._system.type_name in WITHOUT_DIRECTORIES

    @property
    def is_near(self) -> bool:
        """Whether looking for a file costs little."""
        return not is_url(self._location)

    def make(self) -> None:
        with classify_errors(self._location, "make"):
            if not self._is_object_store:
                self._system.create_dir(self._path, recursive=True)

    def put(self, name: str, messages: Sequence[bytes]) -> None:
        """Write a letter. Raises `FileNotFoundError` if the mailbox was removed and the store reports that."""
        body = b"".join(part for message in messages for part in (_LENGTH.pack(len(message)), message))
        written = name if self._is_object_store else f"new-{uuid.uuid4().hex}{MAIL}"
        with classify_errors(self._location, "write a message to", missing=True):
            with self._system.open_output_stream(f"{self._path}/{written}") as target:
                target.write(self._sign(name, body))
                target.write(body)
            if written != name:
                self._system.move(f"{self._path}/{written}", f"{self._path}/{name}")

    def read(self, name: str) -> list[memoryview] | None:
        """The messages of a letter; None if it is not there."""
        try:
            with (
                classify_errors(self._location, "read a message from", missing=True),
                self._system.open_input_stream(f"{self._path}/{name}") as source,
            ):
                data = source.read()
        except FileNotFoundError:
            return None
        body = memoryview(data)[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(data[:_SIGNATURE_BYTES], self._sign(name, body)):
            raise ProtocolError("a message in the store does not have the query's signature")
        return _divide(body)

    def has(self, name: str) -> bool:
        if self.is_near:
            return Path(self._path, name).exists()
        with classify_errors(self._location, "look for a message in"):
            return bool(self._system.get_file_info(f"{self._path}/{name}").type == fs.FileType.File)

    def names(self) -> set[str]:
        """The names of all files."""
        with classify_errors(self._location, "look for messages in"):
            found = self._system.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
        return {info.base_name for info in found}

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError), classify_errors(self._location, "remove a message from", missing=True):
            self._system.delete_file(f"{self._path}/{name}")

    def _sign(self, name: str, body: bytes | memoryview) -> bytes:
        signed = hmac.new(self._secret, name.encode(), "sha256")
        signed.update(body)
        return signed.digest()


def _divide(body: memoryview) -> list[memoryview]:
    messages = []
    while body:
        (length,) = _LENGTH.unpack_from(body)
        messages.append(body[_LENGTH.size : _LENGTH.size + length])
        body = body[_LENGTH.size + length :]
    return messages


@dataclass(frozen=True)
class CallLetters:
    """The names of the letters of one attempt's call."""

    id: str

    def from_task(self, number: int) -> str:
        return f"{self.id}-task-{number:08}{MAIL}"

    def answer(self, number: int) -> str:
        return f"{self.id}-answer-{number:08}{MAIL}"


def call_of(name: str) -> CallLetters | None:
    """The call that a task begins with the file of this name; None for any other file.

    >>> call = CallLetters("0" * 32)
    >>> call_of(call.from_task(0)) == call, call_of(call.from_task(1)), call_of(BEAT)
    (True, None, None)
    """
    found = _LETTER.fullmatch(name)
    return CallLetters(found[1]) if found is not None and found[2] == "task" and int(found[3]) == 0 else None


class Pauses:
    """How long to wait before the next look: briefly after a letter came, longer and longer while none comes."""

    def __init__(self, *, is_near: bool) -> None:
        self._first, self._most = (0.005, 0.1) if is_near else (0.05, 1.0)
        self._next = self._first

    def begin_again(self) -> None:
        self._next = self._first

    def next(self) -> float:
        seconds, self._next = self._next, min(self._most, self._next * 1.5)
        return seconds

    def sleep(self) -> None:
        time.sleep(self.next())
