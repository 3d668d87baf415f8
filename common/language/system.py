"""Errors of the operating system in words."""

import errno
from typing import Final

from common.language import Text

WORDS: Final = {
    errno.ENOENT: Text("there is no such file"),
    errno.EACCES: Text("permission denied"),
    errno.EPERM: Text("permission denied"),
    errno.EISDIR: Text("it is a directory"),
    errno.ESPIPE: Text("it is a pipe, not a file"),
    errno.ENOTDIR: Text("what should be a directory is none"),
    errno.EEXIST: Text("it exists already"),
    errno.ENOSPC: Text("no space left"),
    errno.EDQUOT: Text("no space left"),
    errno.EFBIG: Text("the file is larger than that disk allows (FAT: 4 GB)"),
    errno.EROFS: Text("it can only be read"),
    errno.EIO: Text("the disk does not take or give it"),
    errno.ENAMETOOLONG: Text("the name is too long"),
    errno.ELOOP: Text("a link that must not be followed"),
    errno.ENODEV: Text("there is no such device"),
    errno.ENXIO: Text("there is no such device"),
    errno.EBUSY: Text("it is in use"),
    errno.ECONNREFUSED: Text("connection refused"),
    errno.ECONNRESET: Text("the connection was cut"),
    errno.EPIPE: Text("the connection was cut"),
    errno.ETIMEDOUT: Text("no answer in time"),
    errno.EHOSTUNREACH: Text("there is no way to it in the network"),
    errno.ENETUNREACH: Text("there is no way to it in the network"),
    errno.EADDRINUSE: Text("another program has that port"),
    errno.EADDRNOTAVAIL: Text("this box does not have that address"),
}


def reason(error: OSError) -> str:
    """The error without its path; translated as part of a text."""
    return WORDS.get(error.errno or 0) or error.strerror or str(error) or type(error).__name__
