"""Turn errors of Flight calls into errors of ours."""

from __future__ import annotations

from pyarrow import flight

from sparkfusion.errors import ExternalError, SparkfusionError, UserError

_DEBUG = ". gRPC client debug context"


class RefusedError(UserError):
    """The worker refused the token, or the secret of a query."""


def flight_error(error: BaseException, address: str) -> SparkfusionError:
    """What a failed call means. A call that was refused is not worth a retry."""
    words = str(error).split(_DEBUG)[0].splitlines()
    text = words[0] if words else type(error).__name__
    if isinstance(error, flight.FlightUnauthenticatedError | flight.FlightUnauthorizedError):
        return RefusedError(
            f"worker {address} refused the token",
            hint="add the worker's token to the address as ?token=…, or set SPARKFUSION_TOKEN",
        )
    if "Ssl handshake" in text or "certificate" in text.lower():
        return UserError(
            f"worker {address} and this process cannot establish TLS: {text}",
            hint="flight+tls:// needs ?ca=… of the worker's certificate, and ?cert=…&key=… where it asks for ours; "
            "a worker needs --tls-ca or --tls-peer-ca to read from others",
        )
    if isinstance(error, StopIteration):
        return ExternalError(f"worker {address} closed a call without an answer")
    if "Connection refused" in text or "errors resolving" in text:
        what = "nobody listens there" if "refused" in text else "there is no host of that name"
        return ExternalError(
            f"worker {address} does not answer: {what}",
            hint=f"is it running? sparkfusion worker --port {address.rpartition(':')[2]}",
        )
    if "Socket closed" in text:
        return ExternalError(
            f"worker {address} closed the connection",
            hint="if it was started with TLS, the address is flight+tls://…; if it asks for a certificate (--tls-ca), "
            "the address needs ?cert=…&key=…, signed by its authority",
        )
    return ExternalError(f"worker {address} does not answer: {text}")
