"""A certificate of its own for a server of the tests."""
import os
import subprocess


def certificate(folder, days=90):
    """A certificate for localhost and 127.0.0.1 and its key, as settings, with HTTPS and RTMPS on free ports."""
    pair = [os.path.join(folder, name) for name in ("certificate.pem", "key.pem")]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=127.0.0.1", "-days", str(days),
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", pair[0], "-keyout", pair[1]], check=True, capture_output=True, timeout=30)
    return {"EARSHOT_RTMPS_CERTIFICATE": pair[0], "EARSHOT_RTMPS_KEY": pair[1], "EARSHOT_RTMPS_LISTEN": "127.0.0.1:0", "EARSHOT_HTTPS_LISTEN": "127.0.0.1:0"}
