"""Start a child process so that it cannot outlive the worker.

It is never forked: DataFusion's threads do not survive a fork, and the child would hang.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys

_COMMAND = (
    "import ctypes, json, os, signal, sys; "
    "sys.platform == 'linux' and ctypes.CDLL(None).prctl(1, int(signal.SIGKILL)); "  # PR_SET_PDEATHSIG
    "os.getppid() == int(sys.argv[3]) or os._exit(0); "
    "sys.path[:] = json.loads(sys.argv[2]); "
    "from sparkfusion.transport.process.child import main; main(int(sys.argv[1]))"
)


def start_process() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """A child process, and our end of its pipe.

    Call it from a thread that lives as long as the child may: the kernel ends the child with the *thread* that started
    it. The child has a process group of its own, so a Ctrl-C in the terminal does not reach it: the worker decides.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            process = subprocess.Popen(
                [sys.executable, "-c", _COMMAND, str(theirs.fileno()), json.dumps(sys.path), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
            )
        except BaseException:
            ours.close()
            raise
    return process, ours


def describe_end(code: int) -> str:
    """How a process ended, in words.

    >>> describe_end(-11), describe_end(3)
    ('was killed by SIGSEGV', 'exited with status 3')
    """
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
