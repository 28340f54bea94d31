"""A task's call to its coordinator through the mailbox of the query: it asks for units and sends rows."""

from __future__ import annotations

import time
import uuid
from contextlib import suppress

from sparkfusion.config import MIB
from sparkfusion.errors import ExternalError, ProtocolError, QueryCancelledError, SparkfusionError
from sparkfusion.ids import FeedId
from sparkfusion.runner.spark.feed_address import MailAddress
from sparkfusion.runner.spark.feed_service import MOST_BYTES
from sparkfusion.runner.spark.mail.mailbox import BEAT, CallLetters, Mailbox, Pauses
from sparkfusion.transport.codec import error_of
from sparkfusion.transport.message import Fields, pack, unpack
from sparkfusion.transport.task_side import TaskSide, begin_message
from sparkfusion.worker.awake_clock import AwakeClock

UNREAD_LETTERS = 8
"""How many letters of a task may wait for the coordinator; then the task waits."""

_LETTER_BYTES = 4 * MIB
_LOOK_SECONDS = 1.0


class MailCall(TaskSide):
    """One attempt's call, for as long as the `with` lasts. It has no thread: a task waits when it asks.

    Messages are put together in a letter until the task asks for something, or until they have some megabytes. Leaving
    the `with` without an error waits until the coordinator has everything that was delivered. A letter without messages
    ends the call of an attempt that failed.

    Attributes:
        first: the offset at which an attempt begins, for a task whose rows go to the consumer.
    """

    def __init__(self, address: MailAddress, feed: FeedId, task: int) -> None:
        super().__init__()
        self._box = Mailbox(address.location, address.secret)
        self._patience = address.patience
        self._call = CallLetters(uuid.uuid4().hex)
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._sent = self._answered = 0
        self._beat: bytes = b""
        self._looked_at = time.monotonic()
        self._clock = AwakeClock(_LOOK_SECONDS)
        self._beat_at = self._clock.now
        try:
            self.send(begin_message(address.query, feed, task))
            self.first = self._answer_to("started")[1].integer("first")
        except BaseException:
            self._give_up()
            raise

    def __enter__(self) -> MailCall:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is not None:
            self._give_up()
            return
        try:
            self._ask(pack("finish"))
        except BaseException:
            self._give_up()
            raise

    def send(self, message: bytes) -> None:
        self._unsent.append(message)
        self._unsent_bytes += len(message)
        if self._unsent_bytes >= _LETTER_BYTES:
            self._post()

    def _next_answer(self) -> bytes | None:
        kind, _, blobs = self._answer_to("units", "end")
        return bytes(blobs[0]) if kind == "units" and blobs else None

    def _answer_to(self, *expected: str) -> tuple[str, Fields, list[memoryview]]:
        """Post what was said so far, and wait for the answer."""
        self._post()
        pauses = Pauses(is_near=self._box.is_near)
        while (answer := self._look()) is None:
            pauses.sleep()
            self._check_coordinator()
        if answer[0] not in expected:
            raise ProtocolError(f"unexpected message {answer[0]!r} for a task")
        return answer

    def _look(self) -> tuple[str, Fields, list[memoryview]] | None:
        """The next answer, if it is there. Raises the error that the coordinator sent instead."""
        name = self._call.answer(self._answered)
        letter = self._box.read(name) if not self._box.is_near or self._box.has(name) else None
        if letter is None:
            return None
        self._box.remove(name)
        self._answered += 1
        if len(letter) != 1:
            raise ProtocolError(f"an answer has {len(letter)} messages")
        answer = unpack(letter[0], MOST_BYTES)
        if answer[0] == "error":
            raise error_of(answer[1])
        return answer

    def _post(self) -> None:
        """Write a letter, as soon as the coordinator has read enough of those before it."""
        pauses = Pauses(is_near=self._box.is_near)
        while self._sent >= UNREAD_LETTERS and self._box.has(self._call.from_task(self._sent - UNREAD_LETTERS)):
            if self._look() is not None:
                raise ProtocolError("an answer came before it was asked for")
            pauses.sleep()
            self._check_coordinator()
        messages, self._unsent, self._unsent_bytes = self._unsent, [], 0
        try:
            self._box.put(self._call.from_task(self._sent), messages)
        except FileNotFoundError:
            raise QueryCancelledError("the query has ended") from None
        self._sent += 1

    def _check_coordinator(self) -> None:
        """From time to time, look whether the coordinator still writes that it is alive."""
        now = time.monotonic()
        if now - self._looked_at < _LOOK_SECONDS:
            return
        self._looked_at = now
        self._clock.tick()
        letter = self._box.read(BEAT)
        if letter is None:
            self._remove_letters()
            raise QueryCancelledError("the query has ended")
        beat = b"".join(letter)
        if beat != self._beat:
            self._beat, self._beat_at = beat, self._clock.now
        elif self._clock.now - self._beat_at > self._patience:
            raise ExternalError(
                f"the program that runs the query has been silent for {self._clock.now - self._beat_at:.0f} seconds",
                hint="it ended or hangs, or it does not reach the store any more",
            )

    def _give_up(self) -> None:
        """Send what was said, so that a failure is counted, and end the call."""
        with suppress(SparkfusionError, OSError):
            for messages in (self._unsent, []) if self._unsent else ([],):
                self._box.put(self._call.from_task(self._sent), messages)
                self._sent += 1
            if not self._box.has(BEAT):
                self._remove_letters()

    def _remove_letters(self) -> None:
        """Remove our letters: the query is over, so nobody reads them. An object store accepts letters even after the
        coordinator has removed the mailbox."""
        for number in range(max(0, self._sent - UNREAD_LETTERS - 2), self._sent):
            self._box.remove(self._call.from_task(number))
