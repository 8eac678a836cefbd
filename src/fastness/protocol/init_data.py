"""User-data in an init-data document, whose digest the processor signs.

    version = "0.1.0"
    algorithm = "sha256"
    [data]
    "fastness-userdata.json" = '''{"version": "fastness.dev/userdata/v1", "pool": "worker", "ticket": "…", "server": "https://…"}'''

The host gives the digest of the document to the processor when it starts the machine: HOSTDATA of SNP, MRCONFIGID of TDX. So a
verifier that is sent the document knows what the machine was told, also where there is no register that the agent could extend.

* The entry is read as user-data from any other place is, and it is alone: beside it nobody is told anything.
* A document without the entry is another's (guests of pods have such) and is not user-data.
"""

from __future__ import annotations

from typing import Final

from fastness.formats.errors import UserDataError
from fastness.formats.initdata import InitData
from fastness.protocol.user_data import CODE, UserData, parse_user_data

ENTRY: Final = "fastness-userdata.json"
_HINT: Final = f"Leave {ENTRY} alone in the document: only pool, ticket and server are taken from user-data."


def user_data_in(document: InitData) -> UserData | None:
    """What a document tells a machine; None where it is not for a machine; raises UserDataError."""
    if ENTRY not in document.data:
        return None
    if len(document.data) > 1:
        # The name of the other entry is the host's; that there is one says enough.
        raise UserDataError(CODE, f"there are other entries beside {ENTRY}", "/data", _HINT)
    return parse_user_data(document.data[ENTRY].encode())
