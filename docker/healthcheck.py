"""Ask the service in this container whether it lives. RANKAD_HEALTH is its address, if not the usual one."""

import os
import ssl
import sys
import urllib.request

address = os.environ.get("RANKAD_HEALTH", "http://127.0.0.1:8000/health/live")
# A certificate is for the name that others use, not for 127.0.0.1.
context = ssl._create_unverified_context() if address.startswith("https:") else None
try:
    with urllib.request.urlopen(address, timeout=4, context=context) as answer:
        sys.exit(answer.status != 200)
except OSError as error:
    sys.exit(f"{address}: {error}")
