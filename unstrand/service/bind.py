"""Where the service listens. Loopback only, because nobody has to sign in yet."""

from __future__ import annotations

import errno
import ipaddress
import socket

from unstrand.errors import ServiceError


def listen(host: str, port: int) -> socket.socket:
    """A bound TCP socket on a loopback address; port 0 takes any free one.

    Raises ServiceError when ``host`` is not loopback or the port cannot be taken.
    """
    address = loopback_address(host)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        raise _refusal(error, address, port) from error
    return listener


def loopback_address(host: str) -> str:
    """``host`` as a numeric loopback address, or a refusal that says why and what to do."""
    if host == "localhost":
        return "127.0.0.1"
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise ServiceError(
            f"will not listen on {host}: unstrand has no sign-in yet, so everyone who reaches "
            "this address could read every team's cost. Use 127.0.0.1 and reach it through an "
            "SSH tunnel (ssh -L 8501:127.0.0.1:8501 this-host) or a reverse proxy that signs "
            "people in"
        )
    return host


def url_of(listener: socket.socket) -> str:
    """The address a browser on this machine types."""
    address, port = listener.getsockname()[:2]
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def _refusal(error: Exception, address: str, port: int) -> ServiceError:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return ServiceError(
            f"port {port} of {address} is in use by another program: stop it, or choose "
            f"another port with --port"
        )
    if isinstance(error, OSError) and error.errno == errno.EACCES:
        return ServiceError(f"not allowed to listen on port {port}: choose one above 1023")
    return ServiceError(f"cannot listen on {address} port {port}: {error}")
