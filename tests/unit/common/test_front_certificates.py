"""What HAProxy is given: certificate and key."""

from pathlib import Path

import pytest

from common.front import BadCertificate, check_pair


@pytest.mark.parametrize(
    ("content", "why"), [(None, "there is no such file"), (b"x\n", "no certificate with its private key")]
)
def test_a_certificate_that_cannot_be_used_is_named_with_the_reason(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    pem = tmp_path / "box.pem"
    if content is not None:
        pem.write_bytes(content)
    with pytest.raises(BadCertificate) as error:
        check_pair(pem, pem)
    assert str(error.value).startswith(f"{pem} with {pem}: {why}")
