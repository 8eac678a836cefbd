"""The key broker: the KBS protocol over TLS, its administration, and introspection of tokens.

* `app.py`: every way in, with what a caller must show and may take; guards, refusals.
* `kbs.py`: the three steps of machines. `admin.py`: what administrators write. `introspect.py`: what our own parts ask.
* `release.live.settings`: what the cluster demands, as it is now. `http.limits`: how much one caller and all together may take.
* `server.py`: all of it as one thing that opens and closes.
"""
