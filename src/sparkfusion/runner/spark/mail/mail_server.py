"""The coordinator's side of a query's mailbox. It serves the tasks as the feed server does, with files as messages."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from sparkfusion.errors import ExternalError, ProtocolError, SparkfusionError
from sparkfusion.ids import QueryId
from sparkfusion.runner.spark.feed_address import MailAddress, ServedQuery
from sparkfusion.runner.spark.feed_service import serve_fed_task
from sparkfusion.runner.spark.mail.mailbox import BEAT, CallLetters, Mailbox, Pauses, call_of
from sparkfusion.shared_secrets import new_secret
from sparkfusion.transport.message import Fields

MAIL_PATIENCE_SECONDS = 60.0
_BEAT_SECONDS = 5.0
_JOIN_SECONDS = 2.0
_PUT_ATTEMPTS = 3
_PUT_AGAIN_SECONDS = 0.5
_log = logging.getLogger("sparkfusion")


class CallerGoneError(Exception):
    """The task has ended its call, or the query is over."""


class MailServer:
    """Serves the tasks of one query from when it is made until `close`. One thread looks for letters, for all tasks.

    Args:
        location: a directory or URL that tasks reach. The caller has made the directory above it, and removes it.
        on_failure: called if a task cannot be served because of the store: it would wait for ever.
    """

    def __init__(
        self,
        location: str,
        query: QueryId,
        served: ServedQuery,
        on_failure: Callable[[SparkfusionError], None],
        patience: float = MAIL_PATIENCE_SECONDS,
    ) -> None:
        self.address = MailAddress(location, query, new_secret(), patience)
        self._box = Mailbox(location, self.address.secret)
        self._served = served
        self._on_failure = on_failure
        self._changed = threading.Condition()
        self._present: set[str] = set()
        self._known: set[CallLetters] = set()
        self._closed = False
        self._quickly = threading.Event()
        self._threads: list[threading.Thread] = []
        self._beats = itertools.count()
        self._box.make()
        self._beat()
        self._start(self._watch, "mail")

    def close(self) -> None:
        """Serve no more tasks. Idempotent. Tasks that still wait see that the mailbox is gone."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._quickly.set()
        for thread in list(self._threads):
            thread.join(_JOIN_SECONDS)

    # ---- the thread that looks for letters

    def _watch(self) -> None:
        pauses, beat_at = Pauses(is_near=self._box.is_near), time.monotonic()
        while not self._closed:
            try:
                if time.monotonic() - beat_at >= _BEAT_SECONDS:
                    self._beat()
                    beat_at = time.monotonic()
                found = self._box.names()
            except (SparkfusionError, OSError) as error:  # tasks that wait for too long fail by themselves
                _log.warning("cannot look for messages of tasks: %s", error)
                found = set()
            if self._note(found):
                pauses.begin_again()
            self._quickly.wait(pauses.next())
            if self._quickly.is_set():
                self._quickly.clear()
                pauses.begin_again()

    def _note(self, found: set[str]) -> bool:
        """Wake the threads that wait for letters, and serve new calls. Returns whether there is something new."""
        with self._changed:
            fresh = found - self._present
            self._present = found
            calls = {call for name in fresh if (call := call_of(name)) is not None} - self._known
            self._known |= calls
            if fresh:
                self._changed.notify_all()
        for call in calls:
            self._start(lambda call=call: self._serve(call), "mail-call")  # type: ignore[misc]
        return bool(fresh - {BEAT})

    def _beat(self) -> None:
        self._box.put(BEAT, [str(next(self._beats)).encode()])

    def _start(self, work: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=work, name=f"sparkfusion-{self.address.query}-{name}", daemon=True)
        self._threads = [each for each in self._threads if each.is_alive()]
        self._threads.append(thread)
        thread.start()

    # ---- the thread of one call

    def _serve(self, call: CallLetters) -> None:
        mail = _MailedCall(self, call)
        try:
            serve_fed_task(mail, self._find_query)
        except (CallerGoneError, FileNotFoundError) as error:
            _log.debug("the call of a task has ended: %s", error)
            mail.remove_answers()
        except SparkfusionError as error:
            if not self._closed:
                self._on_failure(error)
        except Exception as error:
            _log.exception("a task that reads a feed could not be served")
            self._on_failure(ExternalError(f"a task that reads a feed could not be served: {error}"))

    def _find_query(self, begin: Fields) -> ServedQuery:
        if begin.text("query") != self.address.query:
            raise ProtocolError("a message is of another query")
        return self._served

    def wait_for(self, name: str) -> list[memoryview]:
        """Wait for a letter, and take it out of the mailbox."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or name in self._present)
                if self._closed:
                    raise CallerGoneError
            letter = self._box.read(name)
            if letter is not None:
                self._box.remove(name)
                return letter
            with self._changed:  # listed, and not there: look again
                self._present.discard(name)

    def is_there(self, name: str) -> bool:
        """Whether the query is over, or the letter has come."""
        with self._changed:
            return self._closed or name in self._present

    def put(self, name: str, message: bytes) -> None:
        for attempt in range(_PUT_ATTEMPTS):
            try:
                self._box.put(name, [message])
                break
            except SparkfusionError:
                if self._closed or attempt == _PUT_ATTEMPTS - 1:
                    raise
                time.sleep(_PUT_AGAIN_SECONDS)
        self._quickly.set()

    def remove(self, name: str) -> None:
        try:
            self._box.remove(name)
        except SparkfusionError as error:  # it goes with the query
            _log.debug("a message was not removed: %s", error.message)


class _MailedCall:
    """One call, for the thread that serves it."""

    def __init__(self, server: MailServer, call: CallLetters) -> None:
        self._server = server
        self._call = call
        self._received = self._sent = 0
        self._messages: deque[memoryview] = deque()

    def receive(self) -> memoryview:
        if not self._messages:
            self._messages += self._server.wait_for(self._call.from_task(self._received))
            self._received += 1
            if not self._messages:
                raise CallerGoneError
        return self._messages.popleft()

    def send(self, message: bytes) -> None:
        self._server.put(self._call.answer(self._sent), message)
        self._sent += 1

    def send_last(self, message: bytes) -> None:
        """Send it. A task that is still writing finds it too: it looks for answers while its letters are not read."""
        self.send(message)

    def is_gone(self) -> bool:
        """Whether there is a new letter of the task. While it waits for an answer, it writes one only to give up."""
        return self._server.is_there(self._call.from_task(self._received))

    def remove_answers(self) -> None:
        """Remove the last answer, which a task that gave up may not have read. It has read all answers before that."""
        if self._sent:
            self._server.remove(self._call.answer(self._sent - 1))
