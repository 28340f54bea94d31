"""The certificate of a feed server: made when the server starts, and sent to tasks together with its address.

Tasks trust this certificate and no other one, so no authority has to sign it. The key never leaves the process.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from pyarrow import flight

from sparkfusion.extras import import_extra

CERTIFICATE_NAME = "feed.sparkfusion.internal"
"""The name in the certificate. Clients expect it, whatever address they use."""
_DAYS = 3650  # longer than any driver runs
_EARLIER = datetime.timedelta(days=1)  # clocks of executors may be behind


@dataclass(frozen=True)
class Certificate:
    """A self-signed certificate and its key, in PEM."""

    public: bytes
    key: bytes = field(repr=False)


def make_certificate(reason: str) -> Certificate:
    """Make a new one. `reason`: what asks for TLS, for the error if the extra is not installed."""
    x509 = import_extra("cryptography.x509", "tls", f"the feed server's TLS, which {reason} asks for,")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, CERTIFICATE_NAME)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(CERTIFICATE_NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoded = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Certificate(made.public_bytes(serialization.Encoding.PEM), encoded)


def open_client(host: str, port: int, certificate: bytes) -> flight.FlightClient:
    """A client of the feed server. With a certificate, it talks TLS, and only with the server that has the key."""
    options = [("grpc.enable_http_proxy", 0)]
    if not certificate:
        return flight.FlightClient(f"grpc://{host}:{port}", generic_options=options)
    return flight.FlightClient(
        f"grpc+tls://{host}:{port}",
        tls_root_certs=certificate,
        override_hostname=CERTIFICATE_NAME,
        generic_options=options,
    )
